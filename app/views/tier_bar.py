"""The bar in three parts, hot to cold, that shows placement, hits and time alike."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.graphs.picture import Picture
from app.theme import metrics
from app.theme.palette import Palette


class TierBar(Picture):
    """A rounded bar of coloured shares.

    ``parts`` are pairs of a palette colour's name and an amount; amounts need not sum to one. What
    is missing to ``total`` stays empty.
    """

    def __init__(
        self, palette: Palette, height: int = metrics.BAR_HEIGHT, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._palette = palette
        self._parts: tuple[tuple[str, float], ...] = ()
        self._total = 0.0
        self.setFixedHeight(height)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_parts(
        self, parts: Sequence[tuple[str, float]], description: str, total: float = 0.0
    ) -> None:
        """Show other shares; ``description`` says them in words for tooltip and screen reader."""
        shown = tuple(parts)
        whole = max(total, sum(amount for _, amount in parts))
        if (shown, whole) != (self._parts, self._total):
            self._parts, self._total = shown, whole
            self.update()
        if description != self.toolTip():
            self.setToolTip(description)
            self.setAccessibleName(description)

    def parts(self) -> tuple[tuple[str, float], ...]:
        """Return the shares shown."""
        return self._parts

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the shares from left to right."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        radius = self.height() / 2
        outline.addRoundedRect(QRectF(self.rect()), radius, radius)
        painter.setClipPath(outline)
        painter.fillRect(self.rect(), QColor(self._palette.empty))
        left = 0.0
        for name, amount in self._parts:
            if self._total <= 0:
                break
            width = self.width() * amount / self._total
            colour = QColor(getattr(self._palette, name))
            painter.fillRect(QRectF(left, 0, width, self.height()), colour)
            left += width
        if self._palette.has_edges:
            inside = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.setPen(QPen(QColor(self._palette.line), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(inside, radius - 0.5, radius - 0.5)

    def sizeHint(self) -> QSize:
        """Return a comfortable width."""
        return QSize(220, self.height())


class Dot(QWidget):
    """A round mark in a palette colour, beside a number that belongs to a tier."""

    def __init__(self, palette: Palette, colour: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._colour = colour
        self.setFixedSize(9, 9)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the mark."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(getattr(self._palette, self._colour)))
        if self._palette.has_edges:
            painter.setPen(QPen(QColor(self._palette.line), 1))
            painter.drawEllipse(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawEllipse(self.rect())
