"""The kind of a drive, read from made-up system files."""

import os
from pathlib import Path

import pytest

from runtime.hardware.drive_kind import drive_kind, drive_temperature
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.machine import DriveKind


def system_with(root: Path, folder: Path, files: dict[str, str], *, is_partition: bool) -> None:
    """Describe the drive below a folder as Linux does, a partition behind a link."""
    device = folder.stat().st_dev
    drive = root / "sys/devices/drive"
    place = drive / "part" if is_partition else drive
    place.mkdir(parents=True)
    for name, text in files.items():
        file = (place if name == "uevent" else drive) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    link = root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(place)


@pytest.mark.parametrize("is_partition", [False, True])
@pytest.mark.parametrize(
    ("name", "turns", "kind"),
    [
        ("nvme0n1p2", "0", DriveKind.NVME),
        ("sda1", "0", DriveKind.SSD),
        ("sda1", "1", DriveKind.DISK),
        ("vda", "1", DriveKind.VIRTUAL),
        ("dm-0", "", DriveKind.UNKNOWN),
    ],
)
def test_drive_kind_is_what_the_system_tells(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    turns: str,
    kind: DriveKind,
    is_partition: bool,
) -> None:
    monkeypatch.setattr("runtime.hardware.drive_kind._device_number", lambda _: _number(tmp_path))
    files = {"uevent": f"MAJOR=8\nDEVNAME={name}\n", "queue/rotational": turns}
    system_with(tmp_path, tmp_path, files, is_partition=is_partition)
    assert drive_kind(tmp_path / "not yet", "ext4", SystemFiles(tmp_path)) is kind


def _number(folder: Path) -> str:
    device = folder.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def test_drive_kind_of_a_share_is_network(tmp_path: Path) -> None:
    assert drive_kind(tmp_path, "nfs4", SystemFiles(tmp_path)) is DriveKind.NETWORK


def test_drive_kind_without_system_files_is_unknown(tmp_path: Path) -> None:
    assert drive_kind(tmp_path, "ext4", SystemFiles(tmp_path)) is DriveKind.UNKNOWN


@pytest.mark.parametrize("is_partition", [False, True])
@pytest.mark.parametrize("sensor", ["device/hwmon1", "device/hwmon/hwmon1"])
def test_drive_temperature_is_what_its_sensor_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sensor: str, is_partition: bool
) -> None:
    monkeypatch.setattr("runtime.hardware.drive_kind._device_number", lambda _: _number(tmp_path))
    files = {"uevent": "DEVNAME=nvme0n1\n", f"{sensor}/temp1_input": "41850\n"}
    system_with(tmp_path, tmp_path, files, is_partition=is_partition)
    assert drive_temperature(tmp_path, SystemFiles(tmp_path)) == 41.85


def test_drive_temperature_without_a_sensor_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.hardware.drive_kind._device_number", lambda _: _number(tmp_path))
    system_with(tmp_path, tmp_path, {"uevent": "DEVNAME=sda\n"}, is_partition=False)
    assert drive_temperature(tmp_path, SystemFiles(tmp_path)) is None
    monkeypatch.setattr("runtime.hardware.drive_kind._device_number", lambda _: None)
    assert drive_temperature(tmp_path) is None
