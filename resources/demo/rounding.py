"""bfloat16 arithmetic on numpy arrays, which have no such type of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
Bf16Bits = npt.NDArray[np.uint16]


def to_bf16_bits(values: FloatArray) -> Bf16Bits:
    """Return the nearest bfloat16 of each finite value (ties to even) as its 16 bits."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    round_up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return ((bits + round_up) >> np.uint32(16)).astype(np.uint16)


def from_bf16_bits(bits: Bf16Bits) -> FloatArray:
    """Return the float32 values that 16-bit patterns stand for."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
