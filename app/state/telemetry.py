"""The measurements of the last minute, the newest expert map, and what happened."""

import dataclasses
import time
from collections import deque
from collections.abc import Callable

import msgspec
from PySide6.QtCore import QObject, Signal

from app.graphs.series import WINDOW_S, WINDOWS_S, SampleSeries
from runtime.protocol.telemetry import ExpertMap, RuntimeNote, TelemetrySample

MAX_NOTES = 50
STEADY_S = 0.5
SELDOM_S = 1.0
"""Samples of a resting engine are of longer than this."""


@dataclasses.dataclass(frozen=True, slots=True)
class TimedNote:
    """Something that happened, with when the window heard of it."""

    at_s: float
    """Seconds since 1970."""
    note: RuntimeNote


class TelemetryState(QObject):
    """What the loaded model's runtime measured. Threads: window thread."""

    sampled = Signal()
    """``latest`` is new."""
    steadied = Signal()
    """Numbers that change slowly may be shown anew: at most twice a second while samples come."""
    noted = Signal()
    """``notes`` changed."""

    def __init__(
        self,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(parent)
        self._clock = clock
        self._wall_clock = wall_clock
        self._latest: TelemetrySample | None = None
        self._experts: ExpertMap | None = None
        self._notes: deque[TimedNote] = deque(maxlen=MAX_NOTES)
        self._steadied_s = -STEADY_S
        self._all_series = {window_s: SampleSeries(window_s) for window_s in WINDOWS_S}
        self.num_samples = 0
        """Grows with each sample, so that a drawing can see whether it is the newest."""

    @property
    def series(self) -> SampleSeries:
        """The last minute, which all numbers are made from."""
        return self._all_series[WINDOW_S]

    def series_of(self, window_s: float) -> SampleSeries:
        """Return the samples of one of the windows that curves can have."""
        return self._all_series[window_s]

    @property
    def now_s(self) -> float:
        """The time that ``series`` is asked with."""
        return self._clock()

    @property
    def latest(self) -> TelemetrySample | None:
        """The newest sample; None if none came or a new runtime has not measured yet."""
        return self._latest

    @property
    def is_working(self) -> bool:
        """Whether the newest sample says that something was written, read or copied."""
        return self._latest is not None and self._latest.is_working

    @property
    def is_lively(self) -> bool:
        """Whether there is more to come soon: samples follow each other closely."""
        latest = self._latest
        return latest is not None and (latest.is_working or latest.interval_s < SELDOM_S)

    @property
    def experts(self) -> ExpertMap | None:
        """The newest expert map, whole; None while there is none."""
        return self._experts

    @property
    def notes(self) -> list[TimedNote]:
        """What happened, newest first."""
        return list(reversed(self._notes))

    def add(self, sample: TelemetrySample) -> None:
        """Take a new sample."""
        if sample.experts is not None:
            self._experts = _whole(sample.experts, self._experts)
        # Kept without its map, which is by far the largest part.
        kept: TelemetrySample = msgspec.structs.replace(sample, experts=None)
        self._latest = kept
        now_s = self._clock()
        for series in self._all_series.values():
            series.add(now_s, kept)
        self.num_samples += 1
        for note in sample.notes:
            self._notes.append(TimedNote(self._wall_clock(), note))
        if sample.notes:
            self.noted.emit()
        self.sampled.emit()
        if now_s - self._steadied_s >= STEADY_S:
            self._steadied_s = now_s
            self.steadied.emit()

    def clear(self) -> None:
        """Forget all, because it belongs to a model that is not loaded any more."""
        self._latest = None
        self._experts = None
        self._notes.clear()
        for series in self._all_series.values():
            series.clear()
        self.noted.emit()
        self.sampled.emit()


def _whole(new: ExpertMap, before: ExpertMap | None) -> ExpertMap:
    """Return a map in which what is as before is filled in."""
    shape = (new.num_layers, new.num_experts)
    if before is None or shape != (before.num_layers, before.num_experts):
        return new
    filled: ExpertMap = msgspec.structs.replace(
        new, tier=new.tier or before.tier, bits=new.bits or before.bits
    )
    return filled
