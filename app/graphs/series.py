"""Samples to points for curves and to smoothed numbers: two clocks for the eye.

Pure: time is an argument, in seconds of any clock that only goes forward.
"""

import dataclasses
import enum
import math
from collections import deque
from collections.abc import Iterable

from runtime.protocol.telemetry import TelemetrySample
from runtime.protocol.values import Tier

WINDOW_S = 60.0
"""How far back curves go, unless more is asked for."""
WINDOWS_S = (WINDOW_S, 300.0, 900.0)
"""How far back they can go."""
NUM_BUCKETS = 240
"""Samples within one bucket make one point, so that a curve has no more points than pixels."""
BUCKET_S = WINDOW_S / NUM_BUCKETS
GAP_S = 1.0
"""Where nothing was measured for this long, or for four buckets, a curve is broken."""
RECENT_S = 10.0
"""How far back single samples are kept for numbers."""
SELDOM = 1.5
"""A sample stands for so many of its intervals, if no other comes."""
SMOOTH_S = 1.0
"""Numbers are means over this long."""

Segment = list[tuple[float, float]]
"""Points of an unbroken curve: seconds before now (negative) and the value, oldest first."""


class Curve(enum.Enum):
    """What is drawn over time, in bytes per second or watts."""

    RAM_READ = 0
    LINK = 1
    DRIVE = 2
    POWER = 3


@dataclasses.dataclass(slots=True)
class _Bucket:
    index: int
    interval_s: float
    amounts: list[float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The sums over some samples."""

    interval_s: float = 0.0
    num_tokens: int = 0
    decode_s: float = 0.0
    """Time that these tokens took."""
    hits: dict[Tier, int] = dataclasses.field(default_factory=dict)
    hit_bytes: dict[Tier, int] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    amounts: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    """Bytes or joules, in the order of ``Curve``."""
    joules: dict[str, float] = dataclasses.field(default_factory=dict)
    """By source."""
    measured_sources: frozenset[str] = frozenset()
    hints: tuple[int, int, int] = (0, 0, 0)
    """Experts read ahead: useful, late, wasted."""

    @property
    def decode_tokens_per_s(self) -> float:
        """Decode rate; 0 where nothing was decoded."""
        return self.num_tokens / self.decode_s if self.decode_s > 0 else 0.0

    @property
    def total_j(self) -> float:
        """Energy of all sources."""
        return sum(self.joules.values())

    def per_s(self, curve: Curve) -> float:
        """Mean over the time of the samples; 0 where there were none."""
        return self.amounts[curve.value] / self.interval_s if self.interval_s > 0 else 0.0


class SampleSeries:
    """The last minute of samples, or more, as curves, and the last seconds as sums."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self.window_s = window_s
        self.bucket_s = window_s / NUM_BUCKETS
        self._buckets: deque[_Bucket] = deque(maxlen=NUM_BUCKETS + 1)
        self._recent: deque[tuple[float, TelemetrySample]] = deque()

    def add(self, at_s: float, sample: TelemetrySample) -> None:
        """Take a sample that arrived at ``at_s``."""
        index = int(at_s // self.bucket_s)
        if not self._buckets or self._buckets[-1].index != index:
            self._buckets.append(_Bucket(index, 0.0, [0.0] * len(Curve)))
        bucket = self._buckets[-1]
        bucket.interval_s += sample.interval_s
        for position, amount in enumerate(_amounts(sample)):
            bucket.amounts[position] += amount
        self._recent.append((at_s, sample))
        while self._recent[0][0] < at_s - RECENT_S:
            self._recent.popleft()

    def clear(self) -> None:
        """Forget all."""
        self._buckets.clear()
        self._recent.clear()

    def is_empty(self, now_s: float) -> bool:
        """Whether nothing was measured within the window."""
        return not self._buckets or self._buckets[-1].index * self.bucket_s < now_s - self.window_s

    def segments(self, curve: Curve, now_s: float) -> list[Segment]:
        """Return the unbroken parts of a curve within the window."""
        found: list[Segment] = []
        last_index: int | None = None
        gap_s = max(GAP_S, 4 * self.bucket_s)
        for bucket in self._buckets:
            x = (bucket.index + 1) * self.bucket_s - now_s
            if x < -self.window_s or bucket.interval_s <= 0:
                continue
            # What a sample was taken of is measured, however long it was.
            if last_index is None or (
                (bucket.index - last_index) * self.bucket_s - bucket.interval_s > gap_s
            ):
                found.append([])
            last_index = bucket.index
            found[-1].append((min(0.0, x), bucket.amounts[curve.value] / bucket.interval_s))
        return found

    def amount(self, curve: Curve, now_s: float) -> float:
        """Return the bytes or joules of a curve within the window."""
        return sum(
            bucket.amounts[curve.value]
            for bucket in self._buckets
            if (bucket.index + 1) * self.bucket_s >= now_s - self.window_s
        )

    def recent(self, now_s: float, window_s: float = SMOOTH_S) -> Totals:
        """Return the sums over the samples that lie for the most part in the last ``window_s``.

        Where a resting engine is measured seldom, that is the newest alone.
        """
        found = [
            sample
            for at_s, sample in self._recent
            if at_s - sample.interval_s / 2 > now_s - window_s
        ]
        if not found and self._recent:
            at_s, newest = self._recent[-1]
            if at_s > now_s - SELDOM * newest.interval_s:
                found = [newest]
        return total(found)

    def recent_decoding(self, now_s: float, window_s: float) -> Totals:
        """The same over those samples in which tokens were written."""
        return total(
            sample for at_s, sample in self._recent if at_s > now_s - window_s and sample.num_tokens
        )


def total(samples: Iterable[TelemetrySample]) -> Totals:
    """Return the sums over samples."""
    interval_s = decode_s = 0.0
    num_tokens = 0
    hits: dict[Tier, int] = {}
    hit_bytes: dict[Tier, int] = {}
    seconds: dict[str, float] = {}
    amounts = [0.0] * len(Curve)
    joules: dict[str, float] = {}
    measured: set[str] = set()
    useful = late = wasted = 0
    for sample in samples:
        interval_s += sample.interval_s
        num_tokens += sample.num_tokens
        useful += sample.hints.useful
        late += sample.hints.late
        wasted += sample.hints.wasted
        if sample.decode_tokens_per_s > 0:
            decode_s += sample.num_tokens / sample.decode_tokens_per_s
        for item in sample.tiers:
            hits[item.tier] = hits.get(item.tier, 0) + item.hits
            hit_bytes[item.tier] = hit_bytes.get(item.tier, 0) + item.bytes
        for cause, amount in sample.seconds.items():
            seconds[cause] = seconds.get(cause, 0.0) + amount
        for position, amount in enumerate(_amounts(sample)):
            amounts[position] += amount
        for part in sample.energy:
            joules[part.source] = joules.get(part.source, 0.0) + part.joules
            if part.is_measured:
                measured.add(part.source)
    return Totals(
        interval_s=interval_s,
        num_tokens=num_tokens,
        decode_s=decode_s,
        hits=hits,
        hit_bytes=hit_bytes,
        seconds=seconds,
        amounts=tuple(amounts),
        joules=joules,
        measured_sources=frozenset(measured),
        hints=(useful, late, wasted),
    )


def shares(amounts: dict[Tier, int]) -> dict[Tier, float]:
    """Return each tier's part of the whole, hot to cold; empty where there is nothing."""
    whole = sum(amounts.values())
    return {tier: amounts.get(tier, 0) / whole for tier in Tier} if whole else {}


def nice_ceiling(value: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten from ``value`` on; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power < value:
        power *= 10
    while power >= value * 10:
        power /= 10
    return next(step * power / 10 for step in (1, 2, 5, 10) if step * power / 10 >= value)


def _amounts(sample: TelemetrySample) -> tuple[float, ...]:
    """Return bytes and joules of a sample, in the order of ``Curve``."""
    return (
        sample.ram_bytes_read,
        sample.link_bytes,
        sample.drive_bytes_read,
        sum(part.joules for part in sample.energy),
    )


def axis(low: float, high: float, max_steps: int = 4) -> tuple[float, float, float]:
    """Return start, end and step of an axis with round numbers around ``low`` to ``high``.

    The axis starts at 0 unless what is shown lies far above it and varies enough to be looked at.
    """
    if low < high * 0.75 or low > high * 0.92:
        start, end = 0.0, high
    else:
        room = (high - low) * 0.1
        start, end = low - room, high + room
    step = nice_ceiling((end - start) / max_steps)
    start = math.floor(start / step + 1e-9) * step
    steps = max(1, math.ceil((end - start) / step - 1e-9))
    return start, start + steps * step, step
