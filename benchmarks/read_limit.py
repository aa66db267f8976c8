"""How fast memory can be read at all: the limit of whatever reads weights once for each token."""

import statistics
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from model_shapes import huge_room

from runtime.native.loader import read_bandwidth

CHUNKS_BYTES = (1 << 18, 1 << 20, 1 << 22, 1 << 30)
"""Of the plain read loops: how much of the memory a thread takes at a time."""
_LIMIT_BYTES = 512 << 20
Bytes = npt.NDArray[np.uint8]


def plain_read(parts: Iterator[Bytes], threads: int) -> float:
    """Return the rate of the best of several plain read loops, each over memory of its own."""
    return max(
        read_bandwidth(part.ctypes.data, part.size, threads, chunk) or 0.0
        for chunk, part in zip(CHUNKS_BYTES, parts, strict=False)
    )


class ReadLimit:
    """The plain read rate around a measurement, and what share of it a token's weights are."""

    def __init__(self, threads: int) -> None:
        """Fill memory that no cache holds, for each read loop its own part."""
        self._threads = threads
        room = huge_room(_LIMIT_BYTES)
        room[:] = 1
        self._parts = room.reshape(len(CHUNKS_BYTES), -1)
        self._found: list[float] = []

    def measure(self) -> None:
        """Read it once more."""
        self._found.append(plain_read(iter(self._parts), self._threads))

    def share(self, bytes_per_s: float) -> float:
        """Return a rate by the median of those that were measured."""
        return round(bytes_per_s / statistics.median(self._found), 3)
