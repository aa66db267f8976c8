"""Beside the expert map: a bar for each layer, which tiers answered its look-ups."""

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.graphs.expert_grid import ExpertGrid
from app.graphs.picture import Picture
from app.theme.palette import Palette

WIDTH = 64
FOCUS_WIDTH = 2
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}


class LayerBars(Picture):
    """Rows beside those of the map; ``pointed`` brings the layer under pointer or cursor keys."""

    pointed = Signal(int)
    """The layer, counted from 0; -1 for none."""

    def __init__(self, grid: ExpertGrid, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = grid
        self._palette = palette
        self._image: QImage | None = None
        self._layer = -1
        self.setFixedWidth(WIDTH)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        # Tiers stand from hot to cold in every language.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def renew(self) -> None:
        """Draw what the grid says now."""
        self._image = None
        self._point(min(self._layer, self._grid.num_layers - 1))
        self.update()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.renew()

    def image(self) -> QImage:
        """Return the bars with one row for each layer."""
        p, grid = self._palette, self._grid
        colours = [QColor(name).rgb() for name in (p.vram, p.ram, p.drive, p.empty)]
        data = grid.hit_pixels(colours, WIDTH).tobytes()
        form = QImage.Format.Format_RGB32
        # The copy owns its pixels; ``data`` would be gone.
        return QImage(data, WIDTH, grid.num_layers, WIDTH * 4, form).copy()

    def _draw_bars(self, painter: QPainter, area: QRectF) -> None:
        if self._image is None:
            self._image = self.image()
        painter.drawImage(area, self._image)
        high = self.height() / self._grid.num_layers
        if high >= 4:
            # A line between rows, so that bars of the same length are still bars.
            painter.setPen(QPen(QColor(self._palette.surface), 1))
            for layer in range(1, self._grid.num_layers):
                y = round(layer * high)
                painter.drawLine(0, y, self.width(), y)
        if self._layer >= 0:
            painter.setPen(QPen(QColor(self._palette.text), 1))
            painter.drawRect(
                QRectF(0.5, self._layer * high, self.width() - 1.5, max(2.0, high - 1))
            )

    def sizeHint(self) -> QSize:
        """Return the width; the height is that of the map."""
        return QSize(WIDTH, 200)

    def minimumSizeHint(self) -> QSize:
        """Return the width alone."""
        return QSize(WIDTH, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the bars, and a frame around the one that is pointed at."""
        painter = QPainter(self)
        area = QRectF(self.rect())
        painter.fillRect(area, QColor(self._palette.empty))
        if not self._grid.is_empty:
            self._draw_bars(painter, area)
        if self.hasFocus():
            painter.setPen(QPen(QColor(self._palette.focus), FOCUS_WIDTH))
            inset = FOCUS_WIDTH // 2
            painter.drawRect(self.rect().adjusted(inset, inset, -inset, -inset))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Name the layer under the pointer."""
        if not self._grid.is_empty:
            layer = int(event.position().y() * self._grid.num_layers / self.height())
            self._point(min(max(0, layer), self._grid.num_layers - 1))

    def leaveEvent(self, event: QEvent) -> None:
        """Name none."""
        self._point(-1)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Name none."""
        self._point(-1)
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move from layer to layer."""
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or self._grid.is_empty:
            super().keyPressEvent(event)
            return
        layer = self._layer + step if self._layer >= 0 else 0
        self._point(min(max(0, layer), self._grid.num_layers - 1))

    def _point(self, layer: int) -> None:
        is_other = layer != self._layer
        self._layer = layer
        if is_other or layer >= 0:
            self.pointed.emit(layer)
        if is_other:
            self.update()
