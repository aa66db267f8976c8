"""The telemetry thread."""

import threading
import time
from collections.abc import Callable

import msgspec

from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import TelemetrySampled
from runtime.protocol.telemetry import RuntimeNote, TelemetrySample
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.requests import Sink
from runtime.service.sampling_pace import SamplingPace

MIN_INTERVAL_S = 0.1
MAX_INTERVAL_S = 60.0

TakeSample = Callable[[float], TelemetrySample | None]
"""Returns what happened in the interval, None if there is nothing to measure yet."""


class Sampler:
    """Sends samples while somebody watches: at a fixed rate, and slowly while the engine rests.

    The first sample of a watch is not sent, since its interval began before; its notes go with the
    next.

    Threads: ``watch``, ``wake`` and ``finish`` belong to the command thread; samples are taken and
    sent by the sampler's own thread, which exists from the first ``watch`` on. ``is_busy`` is
    called by that one.
    """

    def __init__(
        self,
        take: TakeSample,
        sink: Sink,
        error_log: ErrorLog,
        is_busy: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take = take
        self._sink = sink
        self._error_log = error_log
        self._is_busy = is_busy
        self._clock = clock
        self._changed = threading.Condition()
        self._interval_s = 0.0
        self._is_new = False
        """Whether the watch began after the last sample."""
        self._is_woken = False
        """Whether the engine is about to work after a rest, and no sample was taken since."""
        self._pace = SamplingPace()
        """Touched with ``_changed`` held alone."""
        self._is_finished = False
        self._thread: threading.Thread | None = None
        self._taken_s = 0.0
        """When the last sample was taken; of the sampler's thread, as the next."""
        self._is_begun = False
        """Whether a sample of this watch was taken."""
        self._notes: list[RuntimeNote] = []

    def watch(self, interval_s: float) -> float:
        """Set the interval, 0 for none; return the one in force, which is never too short."""
        with self._changed:
            self._interval_s = (
                min(max(interval_s, MIN_INTERVAL_S), MAX_INTERVAL_S) if interval_s else 0.0
            )
            self._is_new = bool(self._interval_s)
            self._pace.wake()
            self._changed.notify()
            if self._thread is None and self._interval_s:
                self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
                self._thread.start()
            return self._interval_s

    def wake(self) -> None:
        """End a rest at once: the engine is about to work."""
        with self._changed:
            self._is_woken = self._pace.is_resting
            self._pace.wake()
            if self._is_woken:
                self._changed.notify()

    def finish(self, timeout_s: float) -> bool:
        """End the thread; return whether it has ended."""
        with self._changed:
            self._is_finished = True
            self._changed.notify()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._wait():
            run_guarded(self._sample, self._stop_watching, self._error_log)

    def _sample(self) -> None:
        """Take a sample of the time since the last, and send it unless it is a watch's first."""
        now_s = self._clock()
        # Asked before the sample is taken: work that ends meanwhile is in the next one.
        is_busy = self._is_busy()
        sample = self._take(now_s - self._taken_s if self._is_begun else 0.0)
        with self._changed:
            self._pace.note(sample, is_busy=is_busy)
        if sample is None:
            return
        notes, self._notes = [*self._notes, *sample.notes], []
        self._taken_s = now_s
        if self._is_begun:
            self._sink(TelemetrySampled(sample=msgspec.structs.replace(sample, notes=notes)))
        else:
            self._notes, self._is_begun = notes, True

    def _stop_watching(self, _: ErrorReport) -> None:
        """Take no more samples after one that failed, which is in the log; asking again tries."""
        with self._changed:
            self._interval_s = 0.0

    def _wait(self) -> bool:
        """Wait until the next sample is due; False at the end.

        The first of a watch is due at once, and so is the one with which a rest ends.
        """
        with self._changed:
            while not self._is_finished:
                if self._is_new:
                    self._is_new = self._is_begun = self._is_woken = False
                    return True
                if self._is_woken and self._interval_s:
                    self._is_woken = False
                    return True
                pause_s = self._pace.interval_s(self._interval_s) if self._interval_s else None
                was_changed = self._changed.wait(pause_s)
                if not was_changed and not self._is_finished:
                    return True
            return False
