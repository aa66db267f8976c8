"""Page-aligned rooms for direct reads whose own target is not."""

import mmap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from runtime.spec.tensors import PAGE_BYTES

BOUNCE_BYTES = 1024 * 1024
MOST_LENT_BYTES = BOUNCE_BYTES - 2 * PAGE_BYTES
"""A range of any place and so many bytes lies in whole pages that a room holds."""


class BouncePool:
    """Rooms of ``BOUNCE_BYTES``, as many as there were reads at the same time.

    Threads: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[mmap.mmap] = []

    @contextmanager
    def room(self) -> Iterator[memoryview]:
        """Lend a room for the time of one read."""
        with self._lock:
            mapping = self._free.pop() if self._free else None
        mapping = mapping or mmap.mmap(-1, BOUNCE_BYTES)
        with memoryview(mapping) as view:
            yield view
        with self._lock:
            self._free.append(mapping)


def pieces_of(offset_bytes: int, num_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the whole pages around a range, in pieces of at most one room: start and size."""
    begin = offset_bytes // PAGE_BYTES * PAGE_BYTES
    end = -(-(offset_bytes + num_bytes) // PAGE_BYTES) * PAGE_BYTES
    for start in range(begin, end, BOUNCE_BYTES):
        yield start, min(BOUNCE_BYTES, end - start)


def scatter(source: memoryview, places: Sequence[memoryview]) -> list[memoryview]:
    """Copy bytes to places one after the other; return what of the places is still empty."""
    remaining = list(places)
    while source.nbytes:
        count = min(source.nbytes, remaining[0].nbytes)
        remaining[0][:count] = source[:count]
        source = source[count:]
        remaining[0] = remaining[0][count:]
        if not remaining[0].nbytes:
            remaining.pop(0)
    return remaining
