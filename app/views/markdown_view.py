"""Markdown drawn as it arrives: prose flows, code and tables stand in frames of their own."""

import time

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.formulas.desk import FormulaDesk
from app.theme.palette import Palette
from app.timers import DRAW_SLICE_S, single_shot
from app.views.code_view import CodeView
from app.views.markdown import Block, Code, MarkdownStream, Prose, Table
from app.views.pieces import remove
from app.views.prose_view import ProseView
from app.views.table_view import TableView

MAX_GROUP_CHARACTERS = 4000
"""Prose is re-laid in groups of about this size, so that an update never costs the whole answer."""
BITE_CHARACTERS = 2000
"""Source is read in bites of about this size."""


class MarkdownView(QWidget):
    """The body of one message.

    Drawing, top to bottom: settled views, then the open group (settled HTML that still shares a
    view with the end) and the open block; behind them source that waits for its slice of time::

        [prose][code][prose] | group: <p>..</p><p>..</p> + <p>the end, still gro | waiting
    """

    link_clicked = Signal(str)
    drew = Signal()
    """A slice was drawn that had waited."""

    def __init__(
        self, palette: Palette, formulas: FormulaDesk | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._palette = palette
        self._formulas = formulas
        self._stream = MarkdownStream()
        self._group = ""
        self._prose: ProseView | None = None
        self._code: CodeView | None = None
        self._table: TableView | None = None
        self._num_groups = 0
        self._source = ""
        self._num_read = 0
        self._is_finished = False
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(8)
        self._timer = single_shot(self, 0, self._on_time)

    @property
    def is_drawn(self) -> bool:
        """Whether no source waits."""
        return self._num_read == len(self._source)

    def source(self) -> str:
        """Return the Markdown shown, or about to be."""
        return self._source

    def append(self, text: str) -> None:
        """Show more source at the end."""
        self._source += text
        if not self._timer.isActive():
            self._read()

    def finish(self) -> None:
        """Highlight what was still open: nothing follows."""
        self._is_finished = True
        if self.is_drawn and self._code is not None:
            self._code.settle()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for index in range(self._layout.count()):
            item = self._layout.itemAt(index)
            view = item.widget() if item is not None else None
            if isinstance(view, ProseView | CodeView | TableView):
                view.show_palette(palette)

    def _on_time(self) -> None:
        self._read()
        self.drew.emit()

    def _read(self) -> None:
        """Draw what waits, for a slice of time."""
        end_s = time.perf_counter() + DRAW_SLICE_S
        last: Block | None = None
        while not self.is_drawn:
            if time.perf_counter() > end_s:
                self._timer.start()
                return
            start = self._num_read
            end = self._source.find("\n", start + BITE_CHARACTERS)
            self._num_read = end + 1 if end >= 0 else len(self._source)
            settled, last = self._stream.append(self._source[start : self._num_read])
            for block in settled:
                self._settle(block)
        if last is not None:
            self._show_open(last)
        if self._is_finished:
            self.finish()

    def _settle(self, block: Block) -> None:
        match block:
            case Code():
                self._show_open(block)
                if self._code is not None:
                    self._code.settle()
                self._code = None
            case Table():
                self._show_open(block)
                self._num_groups += 1
            case Prose():
                self._leave_code()
                self._leave_table()
                self._group += block.html
                if len(self._group) > MAX_GROUP_CHARACTERS:
                    self._close_group()

    def _show_open(self, block: Block) -> None:
        match block:
            case Code():
                self._close_group()
                self._leave_table()
                if self._code is None:
                    self._code = CodeView(self._palette)
                    self._layout.addWidget(self._code)
                self._code.show_text(block.text, block.language)
            case Table():
                self._close_group()
                self._leave_code()
                if not block.is_continued and self._num_groups:
                    self._leave_table()
                if self._table is None:
                    self._table = TableView(self._palette, self._formulas)
                    self._table.link_clicked.connect(self.link_clicked)
                    self._layout.addWidget(self._table)
                self._table.show_group(self._num_groups, block)
            case Prose():
                self._leave_code()
                self._leave_table()
                self._show_prose(self._group + block.html)

    def _show_prose(self, html: str) -> None:
        if self._prose is None:
            self._prose = ProseView(self._palette, self._formulas)
            self._prose.link_clicked.connect(self.link_clicked)
            self._layout.addWidget(self._prose)
        self._prose.show_html(html)

    def _close_group(self) -> None:
        if self._group:
            self._show_prose(self._group)
        elif self._prose is not None:
            # The open block was drawn as prose before it turned out to be something else.
            remove(self._layout, self._prose)
        self._prose = None
        self._group = ""

    def _leave_code(self) -> None:
        """Forget a code view that was open when its block turned out to be something else."""
        if self._code is not None:
            remove(self._layout, self._code)
            self._code = None

    def _leave_table(self) -> None:
        """End a table; one of which nothing was settled turned out to be something else."""
        if self._table is not None and not self._num_groups:
            remove(self._layout, self._table)
        self._table = None
        self._num_groups = 0
