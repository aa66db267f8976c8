"""A table of an answer: drawn in groups of rows, moved sideways where it is too wide."""

import html
import re
import time
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.formulas.desk import FormulaDesk
from app.text.view_words import TableWords
from app.theme.palette import Palette
from app.timers import DRAW_SLICE_S, single_shot
from app.views.formula_text import written
from app.views.markdown import Table
from app.views.prose_view import ProseView
from app.views.table_layout import column_widths

_PADDING_PX = 15
"""Both sides of a cell and its line."""
_EDGE_PX = 2
"""The lines at both sides of a table."""
_STEP_PX = 16
"""Columns are wider than their text by less than this."""
_JOINT_PX = 2
"""The lines at the end of a group, which the next group draws again."""
_TAG = re.compile(r"<[^>]+>")


class TableView(QScrollArea):
    """One table that grows at its end, a group of rows at a time.

    Where new rows want wider columns, the groups before are drawn again, a slice at a time; columns
    grow in steps, so that this is rare.
    """

    link_clicked = Signal(str)

    def __init__(
        self, palette: Palette, formulas: FormulaDesk | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._palette = palette
        self._formulas = formulas
        self._groups: list[Table] = []
        self._views: list[ProseView] = []
        self._natural: list[int] = []
        self._widths: list[int] = []
        self._stale: list[int] = []
        self.setProperty("look", "scroller")
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(TableWords.TABLE)
        inside = QWidget()
        self._layout = QVBoxLayout(inside)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self.setWidget(inside)
        inside.installEventFilter(self)
        self._timer = single_shot(self, 0, self._draw_stale)

    def views(self) -> list[ProseView]:
        """Return the groups of rows, top to bottom."""
        return list(self._views)

    def show_group(self, index: int, table: Table) -> None:
        """Show a group of rows: the last one anew, or one more."""
        if index == len(self._groups):
            self._groups.append(table)
            view = ProseView(self._palette, self._formulas)
            view.link_clicked.connect(self.link_clicked)
            view.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
            if self._views:
                self._views[-1].cut_bottom(_JOINT_PX)
            self._views.append(view)
            self._layout.addWidget(view)
        self._groups[index] = table
        self._widen(_natural_widths(table, self.font()))
        self._draw(index)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for view in self._views:
            view.show_palette(palette)

    def _widen(self, natural: list[int]) -> None:
        """Give the columns the room that new rows want."""
        number = max(len(natural), len(self._natural))
        old, new = (each + [0] * (number - len(each)) for each in (self._natural, natural))
        self._natural = [max(pair) for pair in zip(old, new, strict=True)]
        self._fit_columns()

    def _fit_columns(self) -> None:
        widths = column_widths(self._natural, self._room())
        if widths != self._widths:
            self._widths = widths
            self._stale = list(range(len(self._views)))
            self._timer.start()

    def _room(self) -> int:
        return self.viewport().width() - _EDGE_PX

    def _table_width(self) -> int:
        return sum(self._widths) + _EDGE_PX

    def _draw(self, index: int) -> None:
        view = self._views[index]
        view.setFixedWidth(self._table_width())
        view.show_html(_html(self._groups[index], self._widths, has_head=index == 0))
        self._fit_height()

    def _draw_stale(self) -> None:
        """Draw groups in their new widths, for a slice of time."""
        end_s = time.perf_counter() + DRAW_SLICE_S
        while self._stale:
            self._draw(self._stale.pop(0))
            if time.perf_counter() > end_s:
                self._timer.start()
                return

    def _fit_height(self) -> None:
        height = sum(view.minimumHeight() for view in self._views) + 2 * self.frameWidth()
        bar = self.horizontalScrollBar()
        if self._table_width() > self.viewport().width():
            height += bar.sizeHint().height()
        if self.minimumHeight() != height or self.height() != height:
            self.setFixedHeight(height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the height of the groups when one of them has changed its own."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit_height()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns to the room there is."""
        super().resizeEvent(event)
        self._fit_columns()
        self._fit_height()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Move the table sideways; leave scrolling up and down to the page."""
        turn = event.angleDelta()
        if abs(turn.x()) > abs(turn.y()):
            super().wheelEvent(event)
        else:
            event.ignore()

    def sizeHint(self) -> QSize:
        """Return the height of all groups."""
        return QSize(super().sizeHint().width(), self.minimumHeight())


def _natural_widths(table: Table, font: QFont) -> list[int]:
    """Return how wide each column is without breaks."""
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    bold_metrics, metrics = QFontMetrics(bold), QFontMetrics(font)
    widths = [_width(cell, bold_metrics) for cell in table.head]
    for row in table.rows:
        for column, cell in enumerate(row[: len(widths)]):
            widths[column] = max(widths[column], _width(cell, metrics))
    return [-(-width // _STEP_PX) * _STEP_PX + _PADDING_PX for width in widths]


def _width(cell: str, metrics: QFontMetrics) -> int:
    return metrics.horizontalAdvance(html.unescape(_TAG.sub("", written(cell)))[:200])


def _html(table: Table, widths: Sequence[int], *, has_head: bool) -> str:
    rows = [_row("td", row, table.aligns, widths) for row in table.rows]
    if has_head:
        rows.insert(0, _row("th", table.head, table.aligns, widths))
    body = "".join(rows)
    return f'<table cellspacing="0" width="{sum(widths)}" style="margin: 0">{body}</table>'


def _row(tag: str, cells: Sequence[str], aligns: Sequence[str], widths: Sequence[int]) -> str:
    found = "".join(
        f'<{tag} width="{width}" align="{align or "left"}">{cell}</{tag}>'
        for cell, align, width in zip(cells, aligns, widths, strict=False)
    )
    return f"<tr>{found}</tr>"
