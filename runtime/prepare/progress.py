"""How far a preparation is, told at a bounded rate."""

import time
from collections.abc import Callable
from typing import Protocol

ProgressReport = Callable[[int, int], None]
"""Called with bytes done and bytes in total."""
MIN_INTERVAL_S = 0.05


class Stopper(Protocol):
    """Something that raises ``CancelledError`` once a person asked for the end."""

    def check(self) -> None:
        """Raise if the end was asked for."""


class Progress:
    """Bytes done of all, and the wish to stop, looked at with every step."""

    def __init__(
        self,
        total_bytes: int,
        report: ProgressReport | None,
        stopper: Stopper,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self._report = report
        self._stopper = stopper
        self._clock = clock
        self._told_s = -MIN_INTERVAL_S

    @property
    def remaining_bytes(self) -> int:
        """What is left to do."""
        return self._total_bytes - self._done_bytes

    def check(self) -> None:
        """Raise ``CancelledError`` if the end was asked for."""
        self._stopper.check()

    def add(self, num_bytes: int) -> None:
        """Count bytes as done, tell about it now and then, and look for the wish to stop."""
        self._done_bytes = min(self._done_bytes + num_bytes, self._total_bytes)
        now_s = self._clock()
        if self._report is not None and now_s - self._told_s >= MIN_INTERVAL_S:
            self._told_s = now_s
            self._report(self._done_bytes, self._total_bytes)
        self._stopper.check()

    def finish(self) -> None:
        """Tell that all is done."""
        self._done_bytes = self._total_bytes
        if self._report is not None:
            self._report(self._total_bytes, self._total_bytes)
