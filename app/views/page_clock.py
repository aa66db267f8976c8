"""Two clocks of a page: fast for curves, slow for numbers; both stand while it is not seen.

While the engine rests they stand too, and tick once with each of its few samples.
"""

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.state.telemetry import TelemetryState

FAST_MS = 100
SLOW_MS = 500


class PageClock(QObject):
    """Ticks while its widget is shown, nobody has paused it, and there is something to see."""

    fast = Signal()
    slow = Signal()
    seen_changed = Signal(bool)
    """The widget is shown, or hidden."""

    def __init__(self, widget: QWidget, telemetry: TelemetryState) -> None:
        super().__init__(widget)
        self._telemetry = telemetry
        self._is_seen = False
        self._is_paused = False
        self._timers: list[QTimer] = []
        for interval_ms, signal in ((FAST_MS, self.fast), (SLOW_MS, self.slow)):
            timer = QTimer(self)
            timer.setInterval(interval_ms)
            timer.timeout.connect(signal)
            self._timers.append(timer)
        widget.installEventFilter(self)
        telemetry.sampled.connect(self._on_sampled)

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
        self._run()
        self.tick()

    def tick(self) -> None:
        """Tick once, unless nobody sees it or it is paused."""
        if self._is_seen and not self._is_paused:
            self.fast.emit()
            self.slow.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Start and stop with the widget."""
        if event.type() in (QEvent.Type.Show, QEvent.Type.Hide):
            self._is_seen = event.type() == QEvent.Type.Show
            self._run()
            self.tick()
            self.seen_changed.emit(self._is_seen)
        return False

    def _on_sampled(self) -> None:
        was_running = self.is_running
        self._run()
        if not was_running or not self.is_running:
            self.tick()

    def _run(self) -> None:
        """Let the clocks go while there is something to see."""
        is_running = self._is_seen and not self._is_paused and self._telemetry.is_lively
        if is_running == self.is_running:
            return
        for timer in self._timers:
            if is_running:
                timer.start()
            else:
                timer.stop()
