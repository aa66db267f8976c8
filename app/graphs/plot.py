"""Curves over the last minute, drawn when told to and never by themselves."""

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.graphs.picture import Picture
from app.graphs.series import WINDOW_S, Segment, axis
from app.theme import metrics
from app.theme.palette import Palette

LABEL_PX = 11
_TICKS = {60.0: (10, 1, "s"), 300.0: (60, 60, "min"), 900.0: (180, 60, "min")}
"""For each window: seconds between ticks, seconds of the unit, its name."""


@dataclasses.dataclass(frozen=True, slots=True)
class DrawnCurve:
    """One curve in the unit of the axis."""

    colour: str
    """A name of the palette."""
    segments: list[Segment]
    dashes: tuple[float, ...] = ()
    """Lengths of strokes and gaps, so that the colour is not the only mark; empty is unbroken."""


class CurvePlot(Picture):
    """Axes and curves; the time goes from the window's beginning, a minute ago or more, to now."""

    def __init__(self, palette: Palette, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._curves: tuple[DrawnCurve, ...] = ()
        self._window_s = WINDOW_S
        self.setAccessibleName(name)
        # Time goes from left to right in every language, and so do its numbers.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        # What lies below is never seen, so nothing of it is drawn anew with each point.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_curves(self, curves: Sequence[DrawnCurve], window_s: float = WINDOW_S) -> None:
        """Draw other curves, of so many seconds up to now."""
        shown = tuple(curves)
        if (shown, window_s) != (self._curves, self._window_s):
            self._curves, self._window_s = shown, window_s
            self.update()

    def curves(self) -> tuple[DrawnCurve, ...]:
        """Return what is drawn."""
        return self._curves

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.update()

    def sizeHint(self) -> QSize:
        """Return a small size; the plot takes all the room there is."""
        return QSize(360, 96)

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size in which a curve can be read."""
        return QSize(200, 84)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw axes and curves."""
        painter = QPainter(self)
        # Else a minus sign goes behind its number where the words run from right to left.
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.fillRect(self.rect(), QColor(self._palette.surface))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = QFont(self.font())
        font.setPixelSize(LABEL_PX)
        painter.setFont(font)
        values = [y for curve in self._curves for part in curve.segments for _, y in part]
        low, high, step = axis(min(values, default=0.0), max(values, default=0.0))
        labels = _labels(low, high, step)
        text = QFontMetrics(font)
        left = max(text.horizontalAdvance(label) for _, label in labels) + 10
        area = QRectF(left, 6, self.width() - left - 14, self.height() - 6 - text.height() - 6)
        self._draw_axes(painter, area, labels, (low, high))
        for curve in self._curves:
            pen = QPen(QColor(getattr(self._palette, curve.colour)), 1.6)
            if curve.dashes:
                pen.setDashPattern(curve.dashes)
            painter.setPen(pen)
            for part in curve.segments:
                painter.drawPolyline(_polygon(part, area, self._window_s, (low, high)))

    def _draw_axes(
        self,
        painter: QPainter,
        area: QRectF,
        labels: list[tuple[float, str]],
        span: tuple[float, float],
    ) -> None:
        low, high = span
        line, dim = QColor(self._palette.line), QColor(self._palette.dim)
        faint = _between(line, QColor(self._palette.surface))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for value, label in labels:
            y = area.bottom() - (value - low) / (high - low) * area.height()
            painter.setPen(faint)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(dim)
            box = QRectF(0, y - 8, area.left() - 6, 16)
            painter.drawText(
                box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, label
            )
        painter.setPen(line)
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        painter.drawLine(area.bottomLeft(), area.topLeft())
        tick_s, unit_s, unit = _TICKS[self._window_s]
        step_s = tick_s if area.width() > 300 else 2 * tick_s
        for ago_s in range(0, round(self._window_s) + 1, step_s):
            x = area.right() - ago_s / self._window_s * area.width()
            painter.setPen(dim)
            box = QRectF(x - 24, area.bottom() + metrics.GRID, 48, 14)
            label = f"−{ago_s // unit_s}" if ago_s else f"0 {unit}"
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)


def _between(first: QColor, second: QColor) -> QColor:
    """Return the colour halfway, opaque: a line that lets through takes ten times as long."""
    return QColor(
        (first.red() + second.red()) // 2,
        (first.green() + second.green()) // 2,
        (first.blue() + second.blue()) // 2,
    )


def _polygon(part: Segment, area: QRectF, window_s: float, span: tuple[float, float]) -> QPolygonF:
    low, high = span
    wide, tall = area.width() / window_s, area.height() / (high - low)
    right, bottom = area.right(), area.bottom()
    return QPolygonF([QPointF(right + x * wide, bottom - (y - low) * tall) for x, y in part])


def _labels(low: float, high: float, step: float) -> list[tuple[float, str]]:
    """Return the values of the grid lines with their names, lowest first."""
    digits = 0
    while digits < 3 and abs(step - round(step, digits)) > step * 1e-6:
        digits += 1
    number = round((high - low) / step)
    values = [low + step * index for index in range(number + 1)]
    return [(value, f"{value:,.{digits}f}") for value in values]
