"""A watch over reads in flight: one that takes too long is told while it still waits."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable

from runtime.inspect.files import shown
from runtime.spec.tensors import ExpertId

STALL_S = 5.0
"""A drive that works gives any expert sooner; one that wakes up does too."""

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class StalledRead:
    """A read that the drive has not answered yet."""

    expert: ExpertId
    file: str
    offset_bytes: int
    """Where the expert's first read begins."""
    seconds: float
    """For how long so far."""


Stalled = Callable[[StalledRead], None]
"""Called by the watch's own thread."""


def log_stall(stalled: StalledRead) -> None:
    """Write in the log that the drive does not give an expert."""
    _LOG.warning(
        "layer %d, expert %d has been read for %.0f s, at byte %d of %s",
        stalled.expert.layer,
        stalled.expert.expert,
        stalled.seconds,
        stalled.offset_bytes,
        shown(stalled.file),
    )


class ReadWatch:
    """Knows which thread reads which expert since when, and tells of each read that stalls once.

    Threads: readers ``begin`` and ``end``; a thread of its own looks while anything is read.
    """

    def __init__(
        self,
        stalled: Callable[[ExpertId, float], None],
        limit_s: float = STALL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stalled = stalled
        self._limit_s = limit_s
        self._clock = clock
        self._reading: dict[int, tuple[ExpertId, float]] = {}
        self._told: dict[int, float] = {}
        self._busy = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, expert: ExpertId) -> None:
        """Note that the calling thread begins to read."""
        self._reading[threading.get_ident()] = (expert, self._clock())
        if not self._busy.is_set():
            self._busy.set()
            self._start()

    def end(self) -> None:
        """Note that the calling thread has read."""
        del self._reading[threading.get_ident()]

    def look(self) -> None:
        """Tell of reads that stall and were not told yet."""
        now_s = self._clock()
        for thread, (expert, begun_s) in self._reading.copy().items():
            if now_s - begun_s >= self._limit_s and self._told.get(thread) != begun_s:
                self._told[thread] = begun_s
                self._stalled(expert, now_s - begun_s)

    def close(self) -> None:
        """End the watch; may be called twice."""
        with self._lock:
            self._closed.set()
            self._busy.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        """Let somebody look, if nobody does yet."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="read-watch", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._busy.wait()
            if self._closed.wait(self._limit_s / 4):
                return
            self.look()
            if not self._reading:
                self._busy.clear()
                if self._reading or self._closed.is_set():
                    # It began, or ended, between the two.
                    self._busy.set()
