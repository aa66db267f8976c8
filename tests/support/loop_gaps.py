"""How long the event loop was kept from its work."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Qt, QTimer


class LoopGaps(QObject):
    """Records the longest time between two ticks of a fast timer, in seconds.

    A busy machine makes gaps longer by letting the thread wait; the time that the thread itself
    computed between two ticks does not grow with that.
    """

    def __init__(self, tick_ms: int = 5) -> None:
        super().__init__()
        self.longest_s = 0.0
        self.longest_work_s = 0.0
        """The most that this thread computed between two ticks."""
        self._last_s = time.perf_counter()
        self._last_work_s = time.thread_time()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(tick_ms)
        self._timer.timeout.connect(self._on_tick)

    def start(self) -> None:
        """Begin to record."""
        self.longest_s = self.longest_work_s = 0.0
        self._last_s = time.perf_counter()
        self._last_work_s = time.thread_time()
        self._timer.start()

    def stop(self) -> float:
        """End and return the longest gap."""
        self._on_tick()
        self._timer.stop()
        return self.longest_s

    def _on_tick(self) -> None:
        now_s, work_s = time.perf_counter(), time.thread_time()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self.longest_work_s = max(self.longest_work_s, work_s - self._last_work_s)
        self._last_s, self._last_work_s = now_s, work_s
