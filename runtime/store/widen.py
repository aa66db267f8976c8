"""Widening plain numbers of 16 bits to f32, which holds every one of them. Pure on bytes."""

import numpy as np
import numpy.typing as npt

from runtime.protocol.values import WeightFormat


def widen(weight_format: WeightFormat, place: memoryview) -> None:
    """Fill ``place`` with the f32 values of the numbers of 16 bits in its second half."""
    half = np.frombuffer(place, np.uint16)
    stored = half[half.size // 2 :].copy()
    np.frombuffer(place, np.float32)[:] = _values(weight_format, stored)


def _values(weight_format: WeightFormat, stored: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    if weight_format is WeightFormat.F16:
        return stored.view(np.float16).astype(np.float32)
    assert weight_format is WeightFormat.BF16
    return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
