"""How fast the drives of models are: measured once for each drive and size of reads, then kept."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from runtime.errors import LarderError
from runtime.hardware.drive_kind import drive_kind, drive_temperature
from runtime.hardware.drives import drive_of
from runtime.hardware.rates import RateCache, sized_drive_key
from runtime.protocol.machine import DepthRate, DriveReport, Measured
from runtime.store.drive_rate import DEPTHS, measure_depths, measure_drive_rate
from runtime.store.files import WeightFiles

WAIT_S = 1.5
"""How long a question may wait for measurements; they go on without it."""
USUAL_READ_BYTES = 4 << 20
"""Size of reads where no model tells one."""
MIN_READ_BYTES = 64 << 10

STATED = "profile"
"""Method of what a profile states."""

Measure = Callable[[Path, int], Measured | None]
MeasureDepths = Callable[[Path, int], list[DepthRate]]


class DriveRates:
    """Completes reports of drives by what only reading them can tell.

    A rate is kept by drive and by the power of two above the size of reads, since small reads are
    slower. What a profile or anybody else states stays.

    Threads: called by one thread at a time; each measurement has a thread of its own.
    """

    def __init__(
        self,
        rates_path: Path,
        measure: Measure = measure_drive_rate,
        wait_s: float = WAIT_S,
        depths: MeasureDepths = measure_depths,
    ) -> None:
        self._rates = RateCache(rates_path)
        self._measure = measure
        self._measure_depths = depths
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._threads: dict[tuple[str, str], threading.Thread] = {}
        """By key and folder; each is tried once in the life of the process."""

    def anew(self) -> "DriveRates":
        """Return one that has tried no measurement yet."""
        return DriveRates(self._rates.path, self._measure, self._wait_s, self._measure_depths)

    def complete(self, drives: list[DriveReport], read_bytes: int) -> list[DriveReport]:
        """Return the reports with kinds and rates, measured with reads of about this size.

        A rate that takes too long to measure is absent now and there the next time.
        """
        size = read_size(read_bytes)
        asked = [self._begin(drive, size) for drive in drives]
        deadline_s = time.monotonic() + self._wait_s
        for thread in asked:
            if thread is not None:
                thread.join(max(0.0, deadline_s - time.monotonic()))
        return [self._completed(drive, size) for drive in drives]

    def with_depths(self, drives: list[DriveReport], read_bytes: int) -> list[DriveReport]:
        """Return the reports with rates over queue depths: kept ones, else measured now.

        Each drive takes ``DEPTH_LIMIT_S`` for each depth, once; the lower of all times counts.
        Drives whose rate is stated or could not be measured are left as they are.
        """
        size = read_size(read_bytes)
        return [self._with_depths(drive, size) for drive in drives]

    def _with_depths(self, drive: DriveReport, size: int) -> DriveReport:
        key = rate_key(drive.folder, size)
        if key is None or drive.read_bytes_per_s is None or drive.read_bytes_per_s.method == STATED:
            return drive
        kept = [self._rates.rate(depth_key(key, depth)) for depth in DEPTHS]
        if None in kept:
            for rate in self._measure_depths(Path(drive.folder), size):
                name = depth_key(key, rate.num_at_once)
                self._rates.record(name, rate.bytes_per_s, "uncached reads")
            kept = [self._rates.rate(depth_key(key, depth)) for depth in DEPTHS]
        rates = [
            DepthRate(num_at_once=depth, bytes_per_s=rate.value)
            for depth, rate in zip(DEPTHS, kept, strict=True)
            if rate is not None
        ]
        return msgspec.structs.replace(drive, depth_rates=rates)

    def _begin(self, drive: DriveReport, size: int) -> threading.Thread | None:
        """Begin to measure, unless that is known or was tried; return what to wait for."""
        key = rate_key(drive.folder, size)
        if drive.read_bytes_per_s is not None or key is None or self._rates.rate(key) is not None:
            return None
        with self._lock:
            known = self._threads.get((key, drive.folder))
            if known is not None:
                return known
            thread = threading.Thread(
                target=self._record, args=(key, drive.folder, size), name="drive rate", daemon=True
            )
            self._threads[key, drive.folder] = thread
        thread.start()
        return thread

    def _record(self, key: str, folder: str, size: int) -> None:
        measured = self._measure(Path(folder), size)
        if measured is not None:
            with self._lock:
                self._rates.record(key, measured.value, measured.method)

    def _completed(self, drive: DriveReport, size: int) -> DriveReport:
        key = rate_key(drive.folder, size)
        kept = self._rates.rate(key) if key is not None else None
        return msgspec.structs.replace(
            drive,
            kind=drive_kind(drive.folder, drive.file_system),
            temperature_c=drive_temperature(drive.folder),
            read_bytes_per_s=drive.read_bytes_per_s or kept,
            is_direct=is_read_directly(Path(drive.folder)),
        )


def read_size(read_bytes: int) -> int:
    """Return the size of reads that is measured for reads of a size: the power of two above it."""
    return 1 << (max(read_bytes or USUAL_READ_BYTES, MIN_READ_BYTES) - 1).bit_length()


def rate_key(folder: str, size: int) -> str | None:
    """Return the name under which a rate is kept, None if the drive cannot be told."""
    drive = drive_of(folder)
    if drive is None:
        return None
    return f"{sized_drive_key(drive.mount_point, drive.total_bytes)}{size >> 10}KiB"


def depth_key(key: str, num_at_once: int) -> str:
    """Return the name under which the rate of one depth is kept."""
    return f"{key}:{num_at_once} at once"


def is_read_directly(folder: Path) -> bool | None:
    """Return whether a file of the folder can be read past the cache, None if it has none."""
    try:
        file = next((path for path in sorted(folder.iterdir()) if path.is_file()), None)
        if file is None:
            return None
        opened = WeightFiles([str(file)])
    except (OSError, LarderError):
        return None
    try:
        return opened.is_direct
    finally:
        opened.close()
