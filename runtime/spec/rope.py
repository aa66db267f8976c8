"""Rotary positions: which channels of a head are turned, and by which angles."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class LinearScaling:
    """All positions are divided by ``factor``."""

    factor: float


@dataclasses.dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Slow angles are divided by ``factor``, fast ones stay, those between are blended."""

    factor: float
    low_ratio: float
    high_ratio: float
    original_tokens: int


@dataclasses.dataclass(frozen=True, slots=True)
class YarnScaling:
    """Angles that turn less than ``slow_turns`` in the original context are divided by ``factor``.

    Those that turn more than ``fast_turns`` stay, those between are blended along a ramp, whose
    ends are whole channels if ``is_truncated``. ``magnitude`` multiplies cosines and sines.
    """

    factor: float
    original_tokens: int
    magnitude: float
    fast_turns: float = 32.0
    slow_turns: float = 1.0
    is_truncated: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class LongScaling:
    """Each angle has its own divisor, one list for short contexts and one for long ones.

    Long is a context of more than ``original_tokens``. The magnitudes multiply cosines and sines.
    """

    short_factors: tuple[float, ...]
    long_factors: tuple[float, ...]
    original_tokens: int
    short_magnitude: float
    long_magnitude: float


@dataclasses.dataclass(frozen=True, slots=True)
class ProportionalScaling:
    """Only the first ``share`` of the angles turn; the others are zero, yet all channels pair.

    Those that turn are divided by ``factor``.
    """

    share: float
    factor: float = 1.0


RopeScaling = LinearScaling | Llama3Scaling | YarnScaling | LongScaling | ProportionalScaling


@dataclasses.dataclass(frozen=True, slots=True)
class RopeSpec:
    """The first ``num_channels`` of each head are turned, in pairs, with base ``theta``.

    A pair is a channel and the one ``num_channels / 2`` behind it, or two neighbours if
    ``is_interleaved``.
    """

    theta: float
    num_channels: int
    scaling: RopeScaling | None = None
    is_interleaved: bool = False
