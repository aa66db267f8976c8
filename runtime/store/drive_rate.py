"""How fast a drive gives experts: a short measurement on weight files that are there anyway."""

import math
import mmap
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runtime.errors import LarderError
from runtime.protocol.machine import DepthRate, Measured
from runtime.spec.tensors import PAGE_BYTES
from runtime.store.files import WeightFiles

NUM_READERS = 4
"""Reads in flight, as many as the expert cache has."""
LIMIT_S = 1.0
"""When no further read is begun."""
MAX_READ_BYTES = 16 * 1024 * 1024
"""An expert that is larger is measured in reads of this size: that changes the rate no more."""
MIN_READS = 4
DEPTHS = (1, 4, 16)
"""Reads in flight that a drive is told for; an expert cache has the second."""
DEPTH_LIMIT_S = 0.4
"""When no further read of one depth is begun."""
_STRIDE_RATIO = 0.618


def measure_depths(
    place: Path,
    record_bytes: int,
    limit_s: float = DEPTH_LIMIT_S,
    clock: Callable[[], float] = time.perf_counter,
) -> list[DepthRate]:
    """Return how fast the drive of a folder reads experts with few and with many reads in flight.

    Each depth reads places that the others do not. Empty where ``measure_drive_rate`` is None.
    """
    found: list[DepthRate] = []
    for turn, num_at_once in enumerate(DEPTHS):
        part = (turn, len(DEPTHS))
        rate = _measure(place, record_bytes, limit_s, clock, num_at_once, part)
        if rate > 0:
            found.append(DepthRate(num_at_once=num_at_once, bytes_per_s=rate))
    return found


def measure_drive_rate(
    place: Path,
    record_bytes: int,
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.perf_counter,
) -> Measured | None:
    """Return how fast the drive of a file, or of a folder's largest file, reads experts.

    Reads of ``record_bytes`` go past the cache, several at once, to places all over the file, none
    twice. None if the file cannot be read so, or is too small to tell anything.
    """
    rate = _measure(place, record_bytes, limit_s, clock, NUM_READERS, (0, 1))
    read_mb = _read_bytes(record_bytes) / 1e6
    method = f"uncached reads of {read_mb:.1f} MB, {NUM_READERS} at once"
    return Measured(value=rate, method=method) if rate > 0 else None


def _measure(
    place: Path,
    record_bytes: int,
    limit_s: float,
    clock: Callable[[], float],
    num_at_once: int,
    part: tuple[int, int],
) -> float:
    """Return bytes per second, 0 if nothing could be told.

    ``part`` chooses every so many-th place of the file, beginning with which.
    """
    path = _largest_file(place)
    if path is None:
        return 0.0
    read_bytes = _read_bytes(record_bytes)
    try:
        files = WeightFiles([str(path)])
        try:
            offsets = _offsets(files.size_bytes(str(path)), read_bytes)[part[0] :: part[1]]
            if not files.is_direct or len(offsets) < MIN_READS:
                return 0.0
            lap = _Lap(files, str(path), offsets, read_bytes, clock)
            return lap.run(limit_s, num_at_once)
        finally:
            files.close()
    except LarderError:
        return 0.0


def _read_bytes(record_bytes: int) -> int:
    return min(-(-record_bytes // PAGE_BYTES) * PAGE_BYTES, MAX_READ_BYTES)


def _largest_file(place: Path) -> Path | None:
    try:
        if not place.is_dir():
            return place
        files = [path for path in place.iterdir() if path.is_file()]
        return max(files, key=lambda path: path.stat().st_size, default=None)
    except OSError:
        return None


def _offsets(file_bytes: int, read_bytes: int) -> list[int]:
    """Return where the whole reads of a file begin, neighbours far from each other."""
    number = file_bytes // read_bytes
    stride = max(1, int(number * _STRIDE_RATIO))
    while math.gcd(stride, number) > 1:
        stride += 1
    return [index * stride % number * read_bytes for index in range(number)]


class _Lap:
    """One measurement.

    Threads: ``_work`` runs in several; they take the next offset under a lock.
    """

    def __init__(
        self,
        files: WeightFiles,
        path: str,
        offsets: Sequence[int],
        read_bytes: int,
        clock: Callable[[], float],
    ) -> None:
        self._files = files
        self._path = path
        self._offsets = iter(offsets)
        self._read_bytes = read_bytes
        self._clock = clock
        self._lock = threading.Lock()

    def run(self, limit_s: float, num_at_once: int) -> float:
        """Read until everything is read or the time is over; return bytes per second."""
        started_s = self._clock()
        with ThreadPoolExecutor(num_at_once, thread_name_prefix="drive-rate") as pool:
            tasks = [pool.submit(self._work, started_s + limit_s) for _ in range(num_at_once)]
            for task in tasks:
                task.result()
        taken_s = self._clock() - started_s
        return self._files.num_bytes_read / taken_s if taken_s > 0 else 0.0

    def _work(self, end_s: float) -> None:
        with mmap.mmap(-1, self._read_bytes) as mapping, memoryview(mapping) as room:
            while self._clock() < end_s:
                with self._lock:
                    offset_bytes = next(self._offsets, None)
                if offset_bytes is None:
                    return
                self._files.read(self._path, offset_bytes, [room])
