"""What kind of drive a folder lies on and how warm it is, by the files of Linux; else unknown."""

import os
from pathlib import Path

from runtime.hardware.system_files import SystemFiles
from runtime.protocol.machine import DriveKind

_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afpfs"})
_VIRTUAL = ("vd", "xvd")
"""Beginnings of the names of drives that always say that they turn."""


def drive_kind(
    folder: str | os.PathLike[str], file_system: str, files: SystemFiles | None = None
) -> DriveKind:
    """Return the kind of the drive that holds a folder, which need not exist yet."""
    if file_system in _NETWORK:
        return DriveKind.NETWORK
    number = _device_number(Path(folder).absolute())
    return DriveKind.UNKNOWN if number is None else _kind_of(number, files or SystemFiles())


def drive_temperature(
    folder: str | os.PathLike[str], files: SystemFiles | None = None
) -> float | None:
    """Return how warm the drive of a folder is in degrees Celsius, None where nothing tells."""
    files = files or SystemFiles()
    number = _device_number(Path(folder).absolute())
    if number is None:
        return None
    # The drive of a partition stands one folder up. A sensor lies beside its controller (NVMe)
    # or below it (SATA).
    for place in (f"/sys/dev/block/{number}", f"/sys/dev/block/{number}/.."):
        for sensors in (f"{place}/device", f"{place}/device/hwmon"):
            for entry in files.folders(sensors, "hwmon*"):
                told = files.number(f"{sensors}/{entry}/temp1_input")
                if told is not None:
                    return told / 1000
    return None


def drive_file(folder: str | os.PathLike[str], name: str, files: SystemFiles) -> str:
    """Return a file of the drive of a folder as the kernel shows it, empty where there is none."""
    number = _device_number(Path(folder).absolute())
    if number is None:
        return ""
    place = f"/sys/dev/block/{number}"
    # A partition has such files too; what is meant is the drive, one folder up.
    is_partition = files.number(f"{place}/partition") is not None
    return files.text(f"{place}/../{name}" if is_partition else f"{place}/{name}")


def _device_number(path: Path) -> str | None:
    """Return the number of the block device below a path, None if there is none."""
    if not hasattr(os, "major"):
        return None
    for part in (path, *path.parents):
        try:
            device = part.stat().st_dev
        except OSError:
            continue
        # 0 stands for file systems without a device of their own.
        return f"{os.major(device)}:{os.minor(device)}" if os.major(device) else None
    return None


def _kind_of(number: str, files: SystemFiles) -> DriveKind:
    folder = f"/sys/dev/block/{number}"
    name = next(
        (
            line.removeprefix("DEVNAME=")
            for line in files.text(f"{folder}/uevent").splitlines()
            if line.startswith("DEVNAME=")
        ),
        "",
    )
    if name.startswith("nvme"):
        return DriveKind.NVME
    if name.startswith(_VIRTUAL):
        return DriveKind.VIRTUAL
    # A partition has no queue of its own; the drive stands one folder up, behind the link.
    for place in (folder, f"{folder}/.."):
        turns = files.number(f"{place}/queue/rotational")
        if turns is not None:
            return DriveKind.DISK if turns else DriveKind.SSD
    return DriveKind.UNKNOWN
