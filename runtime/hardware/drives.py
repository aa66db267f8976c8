"""The drive that holds a folder: where it is mounted, its file system, its free room."""

import dataclasses
import os
import shutil
from pathlib import Path

import psutil


@dataclasses.dataclass(frozen=True, slots=True)
class Drive:
    """One mounted file system, as seen from a folder on it."""

    folder: str
    mount_point: str
    file_system: str
    free_bytes: int
    """What this user may write."""
    total_bytes: int


def drive_of(folder: str | os.PathLike[str]) -> Drive | None:
    """Return the drive of a folder, which need not exist yet; None if it cannot be told."""
    path = Path(folder).absolute()
    try:
        existing = next(part for part in (path, *path.parents) if part.exists()).resolve()
        usage = shutil.disk_usage(existing)
        partitions = psutil.disk_partitions(all=True)
    except (OSError, StopIteration):
        return None
    # The last of several mounts on one place is the one that is seen.
    mounts = {
        part.mountpoint: part.fstype
        for part in partitions
        if existing.is_relative_to(part.mountpoint)
    }
    mount_point = max(mounts, key=lambda place: len(Path(place).parts), default=existing.anchor)
    return Drive(
        folder=str(folder),
        mount_point=mount_point,
        file_system=mounts.get(mount_point, ""),
        free_bytes=usage.free,
        total_bytes=usage.total,
    )
