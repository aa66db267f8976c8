"""The blocks of GGUF files as levels with a scale, and in some kinds a least weight. Pure.

A weight is ``scale * level - least``, computed in f32 in this order; that gives the very bits that
the format's own library gives.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from runtime.spec.gguf import PLAIN, GgufKind
from runtime.store.plain import Bytes, Floats, floats_of
from runtime.store.records import q3_k_scales

Levels = npt.NDArray[np.int8]

_HALVES = np.array([0, 4], np.uint8)[:, None]
_QUARTERS = np.array([0, 2, 4, 6], np.uint8)[:, None]
_EIGHTHS = np.arange(8, dtype=np.uint8)[:, None]
_IQ4_LEVELS = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8
)
_FP4_DOUBLED = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)


class Decoded(NamedTuple):
    """Blocks taken apart: ``levels[blocks, columns]``, the others ``[blocks, groups]``."""

    levels: Levels
    scales: Floats
    leasts: Floats | None = None

    def weights(self) -> Floats:
        """Return the weights ``[blocks, columns]``."""
        blocks, groups = self.scales.shape
        values = self.levels.reshape(blocks, groups, -1).astype(np.float32)
        values *= self.scales[..., None]
        if self.leasts is not None:
            values -= self.leasts[..., None]
        return values.reshape(blocks, -1)


def decode(kind: GgufKind, blocks: Bytes) -> Decoded:
    """Take blocks ``[blocks, bytes]`` of a kind that is no plain number apart."""
    return _DECODERS[kind](blocks)


def dequantise(kind: GgufKind, rows: Bytes) -> Floats:
    """Return the weights of rows ``[rows, bytes]`` in f32."""
    if kind in PLAIN:
        return floats_of(PLAIN[kind], rows)
    return decode(kind, rows.reshape(-1, kind.block_bytes)).weights().reshape(len(rows), -1)


def _f16(data: Bytes) -> Floats:
    """Return numbers of two bytes each, ``[blocks, numbers]``."""
    return np.ascontiguousarray(data).view(np.float16).astype(np.float32)


def _nibbles(data: Bytes, run: int) -> Bytes:
    """Return of each run of bytes the low halves and then the high ones."""
    parts = data.reshape(len(data), -1, 1, run) >> _HALVES
    return (parts & np.uint8(15)).reshape(len(data), -1)


def _fifth_bits(data: Bytes) -> Bytes:
    """Return for each of 32 weights its fifth bit, as 16 or 0."""
    bits = np.unpackbits(np.ascontiguousarray(data), axis=1, bitorder="little")
    return bits << np.uint8(4)


def _q4_0(blocks: Bytes) -> Decoded:
    return Decoded(_nibbles(blocks[:, 2:], 16).view(np.int8) - np.int8(8), _f16(blocks[:, :2]))


def _q4_1(blocks: Bytes) -> Decoded:
    levels = _nibbles(blocks[:, 4:], 16).view(np.int8)
    return Decoded(levels, _f16(blocks[:, :2]), -_f16(blocks[:, 2:4]))


def _q5_0(blocks: Bytes) -> Decoded:
    levels = _nibbles(blocks[:, 6:], 16) | _fifth_bits(blocks[:, 2:6])
    return Decoded(levels.view(np.int8) - np.int8(16), _f16(blocks[:, :2]))


def _q5_1(blocks: Bytes) -> Decoded:
    levels = _nibbles(blocks[:, 8:], 16) | _fifth_bits(blocks[:, 4:8])
    return Decoded(levels.view(np.int8), _f16(blocks[:, :2]), -_f16(blocks[:, 2:4]))


def _q8_0(blocks: Bytes) -> Decoded:
    return Decoded(np.ascontiguousarray(blocks[:, 2:]).view(np.int8), _f16(blocks[:, :2]))


def _iq4_nl(blocks: Bytes) -> Decoded:
    return Decoded(_IQ4_LEVELS[_nibbles(blocks[:, 2:], 16)], _f16(blocks[:, :2]))


def _mxfp4(blocks: Bytes) -> Decoded:
    exponents = blocks[:, :1].astype(np.uint32)
    # Half of a power of two, as levels are doubled; the two smallest have no leading one.
    small = np.uint32(0x00200000) << np.minimum(exponents, np.uint32(1))
    bits = np.where(exponents < 2, small, (exponents - np.uint32(1)) << np.uint32(23))
    return Decoded(_FP4_DOUBLED[_nibbles(blocks[:, 1:], 16)], bits.view(np.float32))


def _q2_k(blocks: Bytes) -> Decoded:
    packed, units = blocks[:, :16], _f16(blocks[:, 80:84])
    levels = (blocks[:, 16:80].reshape(len(blocks), 2, 1, 32) >> _QUARTERS) & np.uint8(3)
    scales = units[:, :1] * (packed & np.uint8(15)).astype(np.float32)
    leasts = units[:, 1:] * (packed >> np.uint8(4)).astype(np.float32)
    return Decoded(levels.reshape(len(blocks), -1).view(np.int8), scales, leasts)


def _q3_k(blocks: Bytes) -> Decoded:
    count = len(blocks)
    low = (blocks[:, 32:96].reshape(count, 2, 1, 32) >> _QUARTERS) & np.uint8(3)
    is_high = (blocks[:, :32].reshape(count, 1, 32) >> _EIGHTHS) & np.uint8(1)
    # A bit that is not set takes four away.
    levels = low.reshape(count, -1).view(np.int8) - (
        (is_high.reshape(count, -1) ^ np.uint8(1)) << np.uint8(2)
    ).view(np.int8)
    scales = q3_k_scales(blocks[:, 96:108])
    return Decoded(levels, _f16(blocks[:, 108:110]) * scales.astype(np.float32))


def _scales_and_leasts(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Return eight scales and eight leasts of six bits each, packed in twelve bytes.

    Of the first four the bits are together; of the others the upper two lie above those.
    """
    first, second, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    six, two = np.uint8(63), np.uint8(0x30)
    scales = [first & six, (rest & np.uint8(15)) | ((first >> np.uint8(2)) & two)]
    leasts = [second & six, (rest >> np.uint8(4)) | ((second >> np.uint8(2)) & two)]
    return np.concatenate(scales, axis=1), np.concatenate(leasts, axis=1)


def _k_lines(blocks: Bytes) -> tuple[Floats, Floats]:
    units = _f16(blocks[:, :4])
    scales, leasts = _scales_and_leasts(blocks[:, 4:16])
    return units[:, :1] * scales.astype(np.float32), units[:, 1:] * leasts.astype(np.float32)


def _q4_k(blocks: Bytes) -> Decoded:
    return Decoded(_nibbles(blocks[:, 16:], 32).view(np.int8), *_k_lines(blocks))


def _q5_k(blocks: Bytes) -> Decoded:
    count = len(blocks)
    high = (blocks[:, 16:48].reshape(count, 1, 32) >> _EIGHTHS) & np.uint8(1)
    levels = _nibbles(blocks[:, 48:], 32) | (high.reshape(count, -1) << np.uint8(4))
    return Decoded(levels.view(np.int8), *_k_lines(blocks))


def _q6_k(blocks: Bytes) -> Decoded:
    count = len(blocks)
    low = _nibbles(blocks[:, :128], 64)
    high = (blocks[:, 128:192].reshape(count, 2, 1, 32) >> _QUARTERS) & np.uint8(3)
    levels = (low | high.reshape(count, -1) << np.uint8(4)).view(np.int8) - np.int8(32)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    return Decoded(levels, _f16(blocks[:, 208:210]) * scales)


def _iq4_xs(blocks: Bytes) -> Decoded:
    count = len(blocks)
    low = (blocks[:, 4:8].reshape(count, 4, 1) >> _HALVES[:, 0]).reshape(count, -1) & np.uint8(15)
    high = (blocks[:, 2:4].reshape(count, 2, 1) >> _QUARTERS[:, 0]).reshape(count, -1)
    scales = (low | (high & np.uint8(3)) << np.uint8(4)).view(np.int8) - np.int8(32)
    levels = _IQ4_LEVELS[_nibbles(blocks[:, 8:], 16)]
    return Decoded(levels, _f16(blocks[:, :2]) * scales.astype(np.float32))


_DECODERS: Mapping[GgufKind, Callable[[Bytes], Decoded]] = {
    GgufKind.Q4_0: _q4_0,
    GgufKind.Q4_1: _q4_1,
    GgufKind.Q5_0: _q5_0,
    GgufKind.Q5_1: _q5_1,
    GgufKind.Q8_0: _q8_0,
    GgufKind.Q2_K: _q2_k,
    GgufKind.Q3_K: _q3_k,
    GgufKind.Q4_K: _q4_k,
    GgufKind.Q5_K: _q5_k,
    GgufKind.Q6_K: _q6_k,
    GgufKind.IQ4_NL: _iq4_nl,
    GgufKind.IQ4_XS: _iq4_xs,
    GgufKind.MXFP4: _mxfp4,
}
