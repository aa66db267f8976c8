"""Plain numbers of 16 bits, widened to f32, which holds every one, and rounded from it. Pure."""

import numpy as np
import numpy.typing as npt

from runtime.protocol.values import WeightFormat

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def widen(weight_format: WeightFormat, place: memoryview) -> None:
    """Fill ``place`` with the f32 values of the numbers of 16 bits in its second half."""
    data = np.frombuffer(place, np.uint8)
    stored = data[data.size // 2 :].copy()
    np.frombuffer(place, np.float32)[:] = floats_of(weight_format, stored)


def floats_of(weight_format: WeightFormat, stored: Bytes) -> Floats:
    """Return in f32 the numbers that are stored in a plain format, rows by rows if they are so."""
    match weight_format:
        case WeightFormat.F32:
            return stored.view(np.float32)
        case WeightFormat.F16:
            return stored.view(np.float16).astype(np.float32)
    assert weight_format is WeightFormat.BF16
    return (stored.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def bf16_of(values: Floats) -> npt.NDArray[np.uint16]:
    """Return the bits of numbers in bf16, each rounded once; ties go to even."""
    bits = values.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype(np.uint16)
