"""The expert map on the screen: a row for each layer, a cell for each expert."""

import dataclasses

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.graphs.expert_grid import NUM_LEVELS, Colours, ExpertGrid, MapMode, colours_of
from app.graphs.picture import Picture
from app.theme.palette import Palette
from runtime.protocol.telemetry import ExpertMap

CORNER_RADIUS = 6.0
FOCUS_WIDTH = 2
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


@dataclasses.dataclass(frozen=True, slots=True)
class PointedExpert:
    """The expert under the pointer; numbers count from 0."""

    layer: int
    expert: int
    tier: int
    """0 VRAM, 1 RAM, 2 drive."""
    bits: int
    uses: float
    """In the last minute or so."""


class ExpertMapView(Picture):
    """Draws the newest map; ``pointed`` names the expert under pointer or cursor keys.

    The picture is made once for each map and kept, so that moving the pointer costs nothing.
    """

    pointed = Signal(object)
    """A ``PointedExpert``, or None."""
    clicked = Signal()

    def __init__(
        self, palette: Palette, *, is_small: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._palette = palette
        self._is_small = is_small
        self._grid = ExpertGrid()
        self._picture: QPixmap | None = None
        self._corners: QPainterPath | None = None
        self._cell: tuple[int, int] | None = None
        self._tables: dict[MapMode, Colours] = {}
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        if is_small:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.setMouseTracking(True)
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def grid(self) -> ExpertGrid:
        """What is drawn, as numbers."""
        return self._grid

    def show_map(self, experts: ExpertMap) -> bool:
        """Draw a map and return whether it is new; one that is as before draws nothing."""
        is_new = self._grid.take(experts)
        if is_new:
            self._renew()
        return is_new

    def show_mode(self, mode: MapMode, *, is_sorted: bool) -> None:
        """Draw in another mode."""
        if (mode, is_sorted) != (self._grid.mode, self._grid.is_sorted):
            self._grid.mode = mode
            self._grid.is_sorted = is_sorted
            self._renew()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._tables.clear()
        self._renew()

    def image(self) -> QImage:
        """Return the map with one pixel for each expert."""
        grid = self._grid
        if grid.mode not in self._tables:
            self._tables[grid.mode] = colour_table(self._palette, grid.mode)
        # 32 bits a pixel, because Qt enlarges these fast and in this thread.
        data = grid.pixels(self._tables[grid.mode]).tobytes()
        row_bytes = grid.num_experts * 4
        form = QImage.Format.Format_RGB32
        image = QImage(data, grid.num_experts, grid.num_layers, row_bytes, form)
        # The copy owns its pixels; ``data`` would be gone.
        return image.copy()

    def cell_rect(self, layer: int, column: int) -> QRectF:
        """Return where a cell is drawn."""
        wide = self.width() / max(1, self._grid.num_experts)
        high = self.height() / max(1, self._grid.num_layers)
        return QRectF(column * wide, layer * high, wide, high)

    def _renew(self) -> None:
        self._picture = None
        self._tell()
        self.update()

    def _point(self, cell: tuple[int, int] | None) -> None:
        if cell != self._cell:
            self._cell = cell
            self._tell()
            self.update()

    def _tell(self) -> None:
        """Name the expert in the cell that is pointed at."""
        if self._is_small:
            return
        cell, grid = self._cell, self._grid
        if cell is None or cell[0] >= grid.num_layers or cell[1] >= grid.num_experts:
            self.pointed.emit(None)
            return
        expert = grid.expert_at(*cell)
        self.pointed.emit(PointedExpert(cell[0], expert, *grid.facts(cell[0], expert)))

    def _draw_picture(self) -> QPixmap:
        """Return the map in the size of the widget, with round corners."""
        ratio = self.devicePixelRatioF()
        size = QSize(round(self.width() * ratio), round(self.height() * ratio))
        picture = QPixmap(size)
        picture.setDevicePixelRatio(ratio)
        painter = QPainter(picture)
        area = QRectF(0, 0, self.width(), self.height())
        if self._grid.is_empty:
            painter.fillRect(area, QColor(self._palette.empty))
        else:
            painter.drawImage(area, self.image())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._corners is None:
            self._corners = self._make_corners()
        painter.fillPath(self._corners, QColor(self._palette.surface))
        painter.end()
        return picture

    def _make_corners(self) -> QPainterPath:
        """Return what lies outside of the round corners."""
        path = QPainterPath()
        radius = CORNER_RADIUS
        for x, across in ((0.0, radius), (float(self.width()), -radius)):
            for y, down in ((0.0, radius), (float(self.height()), -radius)):
                corner = QRectF(x, y, across, down).normalized()
                round_part = QRectF(x, y, 2 * across, 2 * down).normalized()
                square, circle = QPainterPath(), QPainterPath()
                square.addRect(corner)
                circle.addEllipse(round_part)
                path.addPath(square.subtracted(circle))
        return path

    def sizeHint(self) -> QSize:
        """Return a small size; the map takes all the room there is."""
        return QSize(240, 168) if self._is_small else QSize(700, 220)

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size in which bands are seen."""
        return QSize(160, 100) if self._is_small else QSize(280, 200)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the kept picture, and a frame around the cell that is pointed at."""
        if self._picture is None:
            self._picture = self._draw_picture()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        if self.hasFocus():
            painter.setPen(QPen(QColor(self._palette.focus), FOCUS_WIDTH))
            inset = FOCUS_WIDTH // 2
            frame = self.rect().adjusted(inset, inset, -inset, -inset)
            painter.drawRoundedRect(frame, CORNER_RADIUS, CORNER_RADIUS)
        if self._cell is not None and not self._grid.is_empty:
            rect = self.cell_rect(*self._cell)
            painter.setPen(QPen(QColor(self._palette.surface), 3))
            painter.drawRect(rect.adjusted(-1.5, -1.5, 1.5, 1.5))
            painter.setPen(QPen(QColor(self._palette.text), 1))
            painter.drawRect(rect.adjusted(-1.5, -1.5, 1.5, 1.5))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw in the new size."""
        self._picture = self._corners = None
        super().resizeEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Name the expert under the pointer."""
        self._point(self._cell_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Tell that the map was clicked."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(
            event.position().toPoint()
        ):
            self.clicked.emit()

    def leaveEvent(self, event: QEvent) -> None:
        """Name none."""
        self._point(None)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Name none."""
        self._point(None)
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move from expert to expert."""
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or self._grid.is_empty:
            super().keyPressEvent(event)
            return
        layer, column = self._cell or (0, 0)
        if self._cell is not None:
            layer = min(max(0, layer + step[0]), self._grid.num_layers - 1)
            column = min(max(0, column + step[1]), self._grid.num_experts - 1)
        self._point((layer, column))

    def _cell_at(self, point: QPointF) -> tuple[int, int] | None:
        if self._grid.is_empty or not QRectF(self.rect()).contains(point):
            return None
        column = int(point.x() * self._grid.num_experts / self.width())
        layer = int(point.y() * self._grid.num_layers / self.height())
        return (
            min(layer, self._grid.num_layers - 1),
            min(column, self._grid.num_experts - 1),
        )


def colour_table(palette: Palette, mode: MapMode) -> Colours:
    """Return the colour of each index of ``ExpertGrid``."""
    return colours_of(_colours(palette, mode))


def _colours(p: Palette, mode: MapMode) -> list[int]:
    if mode is MapMode.USE:
        return _ramp(p.use_weak, p.use_low, p.use_high, p.use_strong)
    if mode is MapMode.TIER:
        ramps = [(p.vram_weak, p.vram), (p.ram_weak, p.ram), (p.drive_weak, p.drive)]
        return [colour for weak, strong in ramps for colour in _ramp(weak, strong)]
    table = []
    for step in (p.bits_4, p.bits_8, p.bits_16, p.bits_32):
        table += [QColor(step).rgb()] * NUM_LEVELS
    return table


def _ramp(*stops: str) -> list[int]:
    """Return ``NUM_LEVELS`` colours from the first stop to the last."""
    colours = [QColor(stop) for stop in stops]
    found = []
    for level in range(NUM_LEVELS):
        place = level / (NUM_LEVELS - 1) * (len(colours) - 1)
        index = min(int(place), len(colours) - 2)
        part = place - index
        low, high = colours[index], colours[index + 1]
        mixed = (
            round(a + (b - a) * part)
            for a, b in (
                (low.red(), high.red()),
                (low.green(), high.green()),
                (low.blue(), high.blue()),
            )
        )
        found.append(QColor(*mixed).rgb())
    return found
