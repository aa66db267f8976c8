"""Weights in few bits as whole numbers with scales, and how each file format writes the same ones.

Scales have at most five significant bits, so that f16 and bf16 hold them, and bf16 holds every
product of a level and a scale: all formats of a model then stand for the very same weights.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

GROUP = 32
"""Columns that share a scale in every format used here."""
_ROW_BLOCK, _QUAD = 8, 4
_MIDDLE = 8
_SCALE_STEPS = 16
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """A matrix in four bits: ``(level - 8) * scale``."""

    levels: Bytes
    """[rows, columns], 0 to 15."""
    scales: Floats
    """[rows, groups]."""

    def values(self) -> Floats:
        """Return the weights."""
        wide = np.repeat(self.scales, GROUP, axis=1)
        return (self.levels.astype(np.float32) - np.float32(_MIDDLE)) * wide

    def q4_0(self) -> Bytes:
        """Return it as GGUF's Q4_0: a scale and 16 bytes, each with two columns 16 apart."""
        rows, groups = self.scales.shape
        halves = self.levels.reshape(rows, groups, 2, GROUP // 2)
        data = np.empty((rows, groups, 2 + GROUP // 2), np.uint8)
        data[..., :2] = self.scales.astype(np.float16)[..., None].view(np.uint8)
        data[..., 2:] = halves[:, :, 0] | halves[:, :, 1] << np.uint8(4)
        return data.reshape(rows, -1)

    def words(self) -> Bytes:
        """Return its levels as compressed-tensors packs them: eight columns in a word."""
        data: Bytes = self.levels[:, ::2] | self.levels[:, 1::2] << np.uint8(4)
        return data

    def q4_g32(self) -> Bytes:
        """Return it as the kernels' own format (docs/formats.md)."""
        rows, groups = self.scales.shape
        blocks = rows // _ROW_BLOCK
        quads = self.levels.reshape(blocks, _ROW_BLOCK, groups, GROUP // _QUAD, _QUAD)
        low, high = np.split(quads.transpose(0, 2, 3, 1, 4), 2, axis=2)
        weights = (low | high << np.uint8(4)).reshape(blocks, groups, -1)
        scales = self.scales.reshape(blocks, _ROW_BLOCK, groups).transpose(0, 2, 1)
        stored = np.ascontiguousarray(scales.astype(np.float16)).view(np.uint8)
        return np.concatenate([stored, weights], axis=2).reshape(-1)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Fours:
    """A matrix in MXFP4: floating-point numbers of four bits, a power of two for each group."""

    codes: Bytes
    """[rows, columns], 0 to 15."""
    exponents: Bytes
    """[rows, groups], 127 more than those of two."""

    def gguf(self) -> Bytes:
        """Return it as GGUF's MXFP4: the exponent and 16 bytes, columns of each 16 apart."""
        rows, groups = self.exponents.shape
        halves = self.codes.reshape(rows, groups, 2, GROUP // 2)
        data = np.empty((rows, groups, 1 + GROUP // 2), np.uint8)
        data[..., 0] = self.exponents
        data[..., 1:] = halves[:, :, 0] | halves[:, :, 1] << np.uint8(4)
        return data.reshape(rows, -1)

    def blocks(self) -> Bytes:
        """Return its codes as gpt-oss publishes them: two neighbours in a byte."""
        data: Bytes = self.codes[:, ::2] | self.codes[:, 1::2] << np.uint8(4)
        return data


def random_levels(random: np.random.Generator, rows: int, columns: int, spread: float) -> Levels:
    """Return random levels of mean nothing, whose weights have about such a standard deviation.

    One level of each group is -7 or 7, so that rounding the weights to four bits gives them back.
    """
    levels = _random_nibbles(random, rows, columns)
    # Level -8 would make the mean less than nothing, and every token's stream the same.
    levels[levels == 0] = _MIDDLE
    levels[:, ::GROUP] = np.where(levels[:, ::GROUP] < _MIDDLE, 1, 15)
    scale = few_bits(np.full(1, spread / 4.25, np.float32))[0]
    return Levels(levels, np.full((rows, columns // GROUP), scale, np.float32))


def random_fours(random: np.random.Generator, rows: int, columns: int, spread: float) -> Fours:
    """Return random numbers in MXFP4 whose standard deviation is near such a one."""
    codes = _random_nibbles(random, rows, columns)
    exponent = round(float(np.log2(spread / 2.93))) + 127
    return Fours(codes, np.full((rows, columns // GROUP), exponent, np.uint8))


def nearest_levels(values: Floats) -> Levels:
    """Return the levels nearest to weights, with a scale for each group."""
    rows, columns = values.shape
    groups = values.reshape(rows, columns // GROUP, GROUP)
    scales = few_bits(np.abs(groups).max(axis=2) / np.float32(7.5))
    levels = np.clip(np.rint(groups / scales[..., None]) + _MIDDLE, 0, 15).astype(np.uint8)
    return Levels(levels.reshape(rows, columns), scales)


def few_bits(values: Floats) -> Floats:
    """Return positive numbers rounded to five significant bits."""
    fractions, exponents = np.frexp(values)
    rounded = np.rint(fractions * 2 * _SCALE_STEPS) / (2 * _SCALE_STEPS)
    result: Floats = np.ldexp(rounded, exponents).astype(np.float32)
    return result


def as_bf16(values: Floats) -> Bytes:
    """Return numbers that bf16 holds exactly, or cut to it, as bytes of bf16."""
    upper = np.ascontiguousarray(values, np.float32).view(np.uint32) >> np.uint32(16)
    return upper.astype(np.uint16).view(np.uint8)


def cut_to_bf16(values: Floats) -> Floats:
    """Return numbers cut to what bf16 holds."""
    data = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return data.view(np.float32)


def _random_nibbles(random: np.random.Generator, rows: int, columns: int) -> Bytes:
    data = random.integers(0, 256, (rows, columns // 2), dtype=np.uint8)
    levels = np.empty((rows, columns), np.uint8)
    levels[:, ::2] = data & np.uint8(15)
    levels[:, 1::2] = data >> np.uint8(4)
    return levels
