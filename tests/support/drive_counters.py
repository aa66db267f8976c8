"""What the system counts of reads: for a process, and for the drive below a folder."""

import os
from pathlib import Path

_SECTOR_BYTES = 512
"""The kernel's unit in these files, whatever the drive's own sectors are."""
_SECTORS_READ = 2


def process_bytes_read(process_id: int) -> int:
    """Return what the system fetched from drives for a process so far."""
    lines = Path(f"/proc/{process_id}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


class DriveCounter:
    """The counters of the block device that holds a folder: everybody's reads."""

    def __init__(self, stat_file: Path) -> None:
        self._stat_file = stat_file

    @property
    def name(self) -> str:
        """The name of the device."""
        return self._stat_file.parent.resolve().name

    def bytes_read(self) -> int:
        """Return what was read from the device so far."""
        fields = self._stat_file.read_text(encoding="ascii").split()
        return int(fields[_SECTORS_READ]) * _SECTOR_BYTES


def drive_counter(folder: Path) -> DriveCounter | None:
    """Return the counters of the drive of a folder, None where no block device holds it."""
    number = folder.stat().st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
    return DriveCounter(place) if place.exists() else None
