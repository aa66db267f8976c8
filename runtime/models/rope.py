"""The tables of rotary positions, from their spec."""

import math

import torch

from runtime.kernels.base import RopeTables
from runtime.spec.rope import (
    LinearScaling,
    Llama3Scaling,
    LongScaling,
    ProportionalScaling,
    RopeSpec,
    YarnScaling,
)


def rope_tables(rope: RopeSpec, num_positions: int) -> RopeTables:
    """Return cosines and sines for positions from 0 on.

    ``num_positions`` is the context of the session: scaling that tells long contexts from short
    ones goes by it, so that a position is turned the same way however long the prompt is.
    """
    frequencies, magnitude = _frequencies(rope, num_positions)
    positions = torch.arange(num_positions, dtype=torch.float32)
    angles = torch.outer(positions, frequencies)
    cosines, sines = angles.cos(), angles.sin()
    if magnitude != 1.0:
        cosines, sines = cosines * magnitude, sines * magnitude
    return RopeTables(cosines, sines, rope.is_interleaved)


def _frequencies(rope: RopeSpec, num_positions: int) -> tuple[torch.Tensor, float]:
    """Return the angle of each pair from one position to the next, and the magnitude."""
    channels = torch.arange(0, rope.num_channels, 2, dtype=torch.int64).to(torch.float32)
    exponents = channels / rope.num_channels
    plain = 1.0 / (rope.theta**exponents)
    match rope.scaling:
        case None:
            return plain, 1.0
        case LinearScaling(factor):
            return plain / factor, 1.0
        case Llama3Scaling() as scaling:
            return _blend_by_wavelength(plain, scaling), 1.0
        case YarnScaling() as scaling:
            return _blend_by_ramp(rope, plain, scaling), scaling.magnitude
        case LongScaling() as scaling:
            is_long = num_positions > scaling.original_tokens
            factors = torch.tensor(scaling.long_factors if is_long else scaling.short_factors)
            magnitude = scaling.long_magnitude if is_long else scaling.short_magnitude
            return 1.0 / (factors * rope.theta**exponents), magnitude
        case ProportionalScaling(share, factor):
            num_turned = int(share * rope.num_channels // 2)
            turned = torch.where(torch.arange(len(plain)) < num_turned, plain, 0.0)
            return turned / factor, 1.0


def _blend_by_wavelength(plain: torch.Tensor, scaling: Llama3Scaling) -> torch.Tensor:
    wavelengths = 2 * math.pi / plain
    turns = scaling.original_tokens / wavelengths
    share = (turns - scaling.low_ratio) / (scaling.high_ratio - scaling.low_ratio)
    share = share.clamp(0.0, 1.0)
    return (1 - share) * plain / scaling.factor + share * plain


def _blend_by_ramp(rope: RopeSpec, plain: torch.Tensor, scaling: YarnScaling) -> torch.Tensor:
    def channel_of(turns: float) -> float:
        """Return which channel turns so often in the original context."""
        length = scaling.original_tokens / (turns * 2 * math.pi)
        return rope.num_channels * math.log(length) / (2 * math.log(rope.theta))

    low, high = channel_of(scaling.fast_turns), channel_of(scaling.slow_turns)
    if scaling.is_truncated:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.num_channels - 1)
    width = high - low or 0.001
    share = ((torch.arange(len(plain), dtype=torch.float32) - low) / width).clamp(0, 1)
    return plain / scaling.factor * share + plain * (1 - share)
