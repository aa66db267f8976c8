"""Two clocks of a page: fast for curves, slow for numbers; both stand while it is not seen."""

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

FAST_MS = 100
SLOW_MS = 500


class PageClock(QObject):
    """Ticks while its widget is shown and nobody has paused it."""

    fast = Signal()
    slow = Signal()
    seen_changed = Signal(bool)
    """The widget is shown, or hidden."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._is_paused = False
        self._timers: list[QTimer] = []
        for interval_ms, signal in ((FAST_MS, self.fast), (SLOW_MS, self.slow)):
            timer = QTimer(self)
            timer.setInterval(interval_ms)
            timer.timeout.connect(signal)
            self._timers.append(timer)
        widget.installEventFilter(self)

    @property
    def is_paused(self) -> bool:
        """Whether a person has stopped the clocks."""
        return self._is_paused

    @property
    def is_running(self) -> bool:
        """Whether the clocks tick."""
        return self._timers[0].isActive()

    def pause(self, is_paused: bool) -> None:
        """Stop the clocks, or let them go on."""
        self._is_paused = is_paused
        self._run(self._widget.isVisible())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Start and stop with the widget."""
        if event.type() in (QEvent.Type.Show, QEvent.Type.Hide):
            is_seen = event.type() == QEvent.Type.Show
            self._run(is_seen)
            self.seen_changed.emit(is_seen)
        return False

    def _run(self, is_seen: bool) -> None:
        is_running = is_seen and not self._is_paused
        if is_running == self.is_running:
            return
        for timer in self._timers:
            if is_running:
                timer.start()
            else:
                timer.stop()
        if is_running:
            self.fast.emit()
            self.slow.emit()
