"""A slider over one memory: what can be given, what others hold, what stays free."""

from PySide6.QtCore import QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QSlider

from app.state.budget_range import BudgetRange
from app.text.drive_phrases import slider_explained
from app.text.monitor_words import BudgetWords
from app.theme.palette import Palette
from app.timers import single_shot

STEPS = 1000
REST_MS = 400
"""Moved by keys, the slider counts as let go after this long."""
_RADIUS = 8.0
_GROOVE = 6.0


class TierSlider(QSlider):
    """Moves within a range; what cannot be given is hatched at its right end.

    The scale is the whole memory where it is what limits, else it ends where more is of no use.
    """

    moved_to = Signal(object)
    """Bytes, while it moves."""
    let_go = Signal(object)
    """Bytes, when it rests."""

    def __init__(self, palette: Palette, colour: str, name: str, *, is_from_zero: bool) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._palette = palette
        self._colour = colour
        self._is_from_zero = is_from_zero
        self._range = BudgetRange(
            total_bytes=0, least_bytes=0, most_bytes=0, others_bytes=0, reserve_bytes=0
        )
        self.setRange(0, STEPS)
        self.setSingleStep(STEPS // 100)
        self.setPageStep(STEPS // 20)
        self.setAccessibleName(name)
        self.setToolTip(BudgetWords.EXPLAINED)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._rest = single_shot(self, REST_MS, lambda: self.let_go.emit(self.chosen_bytes()))
        self.valueChanged.connect(self._on_value_changed)

    @property
    def is_held(self) -> bool:
        """Whether a person moves it now."""
        return self.isSliderDown() or self._rest.isActive()

    def chosen_bytes(self) -> int:
        """Return where it stands."""
        if self.value() >= self._step_of(self._range.most_bytes):
            return self._range.most_bytes
        start, end = self._scale()
        return max(self._lowest(), round(start + (end - start) * self.value() / STEPS))

    def show_range(self, bounds: BudgetRange) -> None:
        """Show another range."""
        if bounds != self._range:
            self._range = bounds
            self.setToolTip(slider_explained(bounds))
            self.setEnabled(bounds.most_bytes > self._lowest())
            self.update()

    def show_bytes(self, num_bytes: int) -> None:
        """Stand elsewhere, unless a person holds it."""
        if not self.is_held:
            with QSignalBlocker(self):
                self.setValue(self._step_of(num_bytes))
            self.update()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.update()

    def _lowest(self) -> int:
        return 0 if self._is_from_zero else self._range.least_bytes

    def _scale(self) -> tuple[int, int]:
        """Return the bytes at both ends."""
        bounds = self._range
        taken = bounds.most_bytes + bounds.others_bytes + bounds.reserve_bytes
        is_limited = taken >= bounds.total_bytes
        end = bounds.total_bytes if is_limited else bounds.most_bytes
        start = 0 if is_limited else self._lowest()
        return start, max(end, bounds.most_bytes, start + 1)

    def _step_of(self, num_bytes: int) -> int:
        start, end = self._scale()
        return round(STEPS * min(1.0, max(0.0, (num_bytes - start) / (end - start))))

    def _x_of(self, num_bytes: float) -> float:
        start, end = self._scale()
        part = min(1.0, max(0.0, (num_bytes - start) / (end - start)))
        return _RADIUS + part * (self.width() - 2 * _RADIUS)

    def _on_value_changed(self, value: int) -> None:
        low = self._step_of(self._lowest())
        high = self._step_of(self._range.most_bytes)
        bounded = min(max(value, low), high)
        if bounded != value:
            with QSignalBlocker(self):
                self.setValue(bounded)
        if not self.isSliderDown():
            self._rest.start()
        self.moved_to.emit(self.chosen_bytes())
        self.update()

    def _go_to(self, x: float) -> None:
        part = (x - _RADIUS) / max(1.0, self.width() - 2 * _RADIUS)
        self.setValue(round(STEPS * min(1.0, max(0.0, part))))

    def sizeHint(self) -> QSize:
        """Return a comfortable size."""
        return QSize(200, 24)

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size in which it can be held."""
        return QSize(120, 24)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold where the pointer is."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.setSliderDown(True)
            self._go_to(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move along."""
        if self.isSliderDown():
            self._go_to(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        if self.isSliderDown():
            self.setSliderDown(False)
            self._rest.stop()
            self.let_go.emit(self.chosen_bytes())

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave scrolling to the page."""
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the groove, what is given, what cannot be given, the handle."""
        palette = self._palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        middle = self.height() / 2
        top, right = middle - _GROOVE / 2, self.width() - _RADIUS
        colour = QColor(getattr(palette, self._colour if self.isEnabled() else "dim"))

        def bar(left: float, end: float, brush: QBrush) -> None:
            if end > left:
                painter.setBrush(brush)
                rect = QRectF(left, top, end - left, _GROOVE)
                painter.drawRoundedRect(rect, _GROOVE / 2, _GROOVE / 2)

        bar(_RADIUS, right, QBrush(QColor(palette.empty)))
        limit = self._x_of(self._range.most_bytes)
        free = self._range.total_bytes - self._range.others_bytes
        others = max(limit, self._x_of(free))
        reserve = max(limit, self._x_of(free - self._range.reserve_bytes))
        bar(reserve, others, QBrush(QColor(palette.dim), Qt.BrushStyle.Dense5Pattern))
        bar(others, right, QBrush(QColor(palette.dim), Qt.BrushStyle.BDiagPattern))
        at = self._x_of(self.chosen_bytes())
        bar(_RADIUS, at, QBrush(colour))
        if palette.has_edges:
            painter.setPen(QPen(QColor(palette.line), 1))
            bar(_RADIUS, right, QBrush(Qt.BrushStyle.NoBrush))
        painter.setBrush(QColor(palette.surface))
        ring = QColor(palette.focus) if self.hasFocus() else colour
        painter.setPen(QPen(ring, 3 if self.hasFocus() else 2))
        painter.drawEllipse(QRectF(at - 7, middle - 7, 14, 14))
