"""The telemetry thread."""

import threading
from collections.abc import Callable

from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import TelemetrySampled
from runtime.protocol.telemetry import TelemetrySample
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.requests import Sink

MIN_INTERVAL_S = 0.05
MAX_INTERVAL_S = 60.0

TakeSample = Callable[[float], TelemetrySample | None]
"""Returns what happened in the interval, None if there is nothing to measure yet."""


class Sampler:
    """Sends samples at a fixed rate while somebody watches.

    Threads: ``watch`` and ``finish`` belong to the command thread; samples are taken and sent by
    the sampler's own thread, which exists from the first ``watch`` on.
    """

    def __init__(self, take: TakeSample, sink: Sink, error_log: ErrorLog) -> None:
        self._take = take
        self._sink = sink
        self._error_log = error_log
        self._changed = threading.Condition()
        self._interval_s = 0.0
        self._is_finished = False
        self._thread: threading.Thread | None = None

    def watch(self, interval_s: float) -> float:
        """Set the interval, 0 for none; return the one in force, which is never too short."""
        with self._changed:
            self._interval_s = (
                min(max(interval_s, MIN_INTERVAL_S), MAX_INTERVAL_S) if interval_s else 0.0
            )
            self._changed.notify()
            if self._thread is None and self._interval_s:
                self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
                self._thread.start()
            return self._interval_s

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
        while (interval_s := self._wait()) is not None:
            run_guarded(lambda: self._send(interval_s), self._stop_watching, self._error_log)

    def _send(self, interval_s: float) -> None:
        sample = self._take(interval_s)
        if sample is not None:
            self._sink(TelemetrySampled(sample=sample))

    def _stop_watching(self, _: ErrorReport) -> None:
        """Take no more samples after one that failed, which is in the log; asking again tries."""
        with self._changed:
            self._interval_s = 0.0

    def _wait(self) -> float | None:
        """Wait for a whole interval and return it; None at the end."""
        with self._changed:
            while not self._is_finished:
                interval_s = self._interval_s
                was_changed = self._changed.wait(interval_s or None)
                if not was_changed and not self._is_finished:
                    return interval_s
            return None
