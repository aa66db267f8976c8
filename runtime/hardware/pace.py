"""Made-up paths for bytes: what takes one is done no sooner than its speed allows."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

SHORT_S = 0.0001
"""A wait that is shorter is not slept: a sleep would last longer than it."""


class PaceClock(Protocol):
    """Time as a made-up path lives it."""

    def now_s(self) -> float:
        """Return monotonic seconds."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class RealClock:
    """The time of this PC."""

    def now_s(self) -> float:
        """Return monotonic seconds."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        if seconds >= SHORT_S:
            time.sleep(seconds)
            return
        until_s = time.perf_counter() + seconds
        while time.perf_counter() < until_s:
            pass


class Pace:
    """The speed of a path on which one transfer follows another.

    Threads: any; transfers may run at once, and take the path in the order in which they began.
    """

    def __init__(self, bytes_per_s: float, clock: PaceClock | None = None) -> None:
        self._bytes_per_s = bytes_per_s
        self._clock = RealClock() if clock is None else clock
        self._free_at_s = 0.0
        self._lock = threading.Lock()

    def move(self, num_bytes: int, transfer: Callable[[], object]) -> None:
        """Run ``transfer``, which moves so many bytes, and return when the path has let them by."""
        clock = self._clock
        with self._lock:
            self._free_at_s = max(clock.now_s(), self._free_at_s) + num_bytes / self._bytes_per_s
            until_s = self._free_at_s
        transfer()
        left_s = until_s - clock.now_s()
        if left_s > 0:
            clock.sleep(left_s)
