"""Drive rates: measured once for a drive and size, kept, never waited for too long."""

import threading
from pathlib import Path

import pytest

from runtime.protocol.machine import DepthRate, DriveReport, Measured
from runtime.service.drive_rates import (
    MIN_READ_BYTES,
    USUAL_READ_BYTES,
    DriveRates,
    is_read_directly,
    read_size,
)


class FakeDrive:
    """Measures what it is told, and remembers what was asked."""

    def __init__(self, rate: float | None = 1e9) -> None:
        self.asked: list[tuple[str, int]] = []
        self.rate = rate
        self.gate = threading.Event()
        self.gate.set()
        self.is_done = threading.Event()

    def measure(self, place: Path, record_bytes: int) -> Measured | None:
        self.asked.append((place.name, record_bytes))
        assert self.gate.wait(10.0)
        self.is_done.set()
        return None if self.rate is None else Measured(value=self.rate, method="fake")


def report(folder: Path, rate: Measured | None = None) -> DriveReport:
    return DriveReport(
        folder=str(folder), file_system="ext4", free_bytes=1, total_bytes=2, read_bytes_per_s=rate
    )


def rate_of(rates: DriveRates, folder: Path, read_bytes: int = 1 << 20) -> float | None:
    (drive,) = rates.complete([report(folder)], read_bytes)
    return None if drive.read_bytes_per_s is None else drive.read_bytes_per_s.value


@pytest.mark.parametrize(
    ("read_bytes", "size"),
    [
        (0, USUAL_READ_BYTES),
        (1, MIN_READ_BYTES),
        (MIN_READ_BYTES, MIN_READ_BYTES),
        (MIN_READ_BYTES + 1, 2 * MIN_READ_BYTES),
        (9_437_184, 16 << 20),
    ],
)
def test_read_size_is_the_power_of_two_above(read_bytes: int, size: int) -> None:
    assert read_size(read_bytes) == size


def test_rates_are_measured_once_for_a_size_and_kept_for_the_next_process(tmp_path: Path) -> None:
    drive = FakeDrive()
    path = tmp_path / "cache" / "rates.json"
    rates = DriveRates(path, drive.measure)
    assert [rate_of(rates, tmp_path) for _ in range(3)] == [1e9] * 3
    drive.rate = 2e9
    assert rate_of(rates, tmp_path, 8 << 20) == 2e9
    assert drive.asked == [(tmp_path.name, 1 << 20), (tmp_path.name, 8 << 20)]
    other = FakeDrive()
    assert rate_of(DriveRates(path, other.measure), tmp_path) == 1e9
    assert other.asked == []


def test_rates_that_cannot_be_measured_are_tried_once_in_each_folder(tmp_path: Path) -> None:
    drive = FakeDrive(None)
    rates = DriveRates(tmp_path / "rates.json", drive.measure)
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "empty", tmp_path):
        assert rate_of(rates, folder) is None
    assert [name for name, _ in drive.asked] == ["empty", tmp_path.name]


def test_rates_that_take_too_long_are_there_the_next_time(tmp_path: Path) -> None:
    drive = FakeDrive()
    drive.gate.clear()
    rates = DriveRates(tmp_path / "rates.json", drive.measure, wait_s=0.01)
    assert rate_of(rates, tmp_path) is None
    drive.gate.set()
    assert drive.is_done.wait(10.0)
    patient = DriveRates(tmp_path / "rates.json", drive.measure)
    assert rate_of(patient, tmp_path) == 1e9


def test_rates_that_are_stated_stay(tmp_path: Path) -> None:
    drive = FakeDrive()
    stated = Measured(value=5.0, method="profile")
    rates = DriveRates(tmp_path / "rates.json", drive.measure)
    (completed,) = rates.complete([report(tmp_path, stated)], 1 << 20)
    assert completed.read_bytes_per_s == stated
    assert drive.asked == []


def test_is_read_directly_of_a_folder_without_files_is_not_known(tmp_path: Path) -> None:
    assert is_read_directly(tmp_path) is None
    assert is_read_directly(tmp_path / "missing") is None
    (tmp_path / "weights").write_bytes(b"x" * 8192)
    assert is_read_directly(tmp_path) in (True, False)


def test_rates_of_depths_are_measured_once_and_the_least_of_each_is_kept(tmp_path: Path) -> None:
    told = {1: 1e9, 4: 3e9, 16: 4e9}
    asked: list[int] = []

    def depths(_place: Path, size: int) -> list[DepthRate]:
        asked.append(size)
        return [DepthRate(num_at_once=depth, bytes_per_s=rate) for depth, rate in told.items()]

    drive = FakeDrive()
    rates = DriveRates(tmp_path / "rates.json", drive.measure, depths=depths)
    plain = rates.complete([report(tmp_path)], 1 << 20)
    for _ in range(2):
        (found,) = rates.with_depths(plain, 1 << 20)
        assert {rate.num_at_once: rate.bytes_per_s for rate in found.depth_rates} == told
    assert asked == [1 << 20]


def test_rates_of_depths_are_left_where_the_rate_is_stated_or_unknown(tmp_path: Path) -> None:
    rates = DriveRates(tmp_path / "rates.json", FakeDrive(None).measure)
    drives = [report(tmp_path), report(tmp_path, Measured(value=5.0, method="profile"))]
    assert rates.with_depths(drives, 1 << 20) == drives


def test_rates_of_depths_that_cannot_be_measured_are_absent(tmp_path: Path) -> None:
    rates = DriveRates(tmp_path / "rates.json", FakeDrive().measure, depths=lambda *_: [])
    (found,) = rates.with_depths(rates.complete([report(tmp_path)], 1 << 20), 1 << 20)
    assert found.depth_rates == []
