"""How long the event loop was kept from its work."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Qt, QTimer


class LoopGaps(QObject):
    """Records the longest time between two ticks of a fast timer, in seconds."""

    def __init__(self, tick_ms: int = 5) -> None:
        super().__init__()
        self.longest_s = 0.0
        self._last_s = time.perf_counter()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(tick_ms)
        self._timer.timeout.connect(self._on_tick)

    def start(self) -> None:
        """Begin to record."""
        self.longest_s = 0.0
        self._last_s = time.perf_counter()
        self._timer.start()

    def stop(self) -> float:
        """End and return the longest gap."""
        self._on_tick()
        self._timer.stop()
        return self.longest_s

    def _on_tick(self) -> None:
        now_s = time.perf_counter()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self._last_s = now_s
