"""Bytes written and degrees, read from made-up system files and a made-up card."""

import sys
from pathlib import Path

import pytest

from runtime.hardware.gpu_warmth import GpuWarmth
from runtime.hardware.strain import LOOK_S, StrainMeter
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.telemetry import MachineStrain
from tests.support.fake_systems import system

DRIVE = "/sys/dev/block/8:1"
IO = "/proc/self/io"
HWMON = "/sys/class/hwmon"


@pytest.fixture(autouse=True)
def no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr("runtime.hardware.drive_kind._device_number", lambda _: "8:1")


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def counters(sectors: int) -> str:
    return f"  10 0 80 5 20 3 {sectors} 9 0 14 14"


def io(written: int, cancelled: int = 0) -> str:
    return f"rchar: 1\nwrite_bytes: {written}\ncancelled_write_bytes: {cancelled}"


def test_strain_counts_from_when_it_began(tmp_path: Path) -> None:
    clock = Clock()
    files = system(tmp_path, {IO: io(1000), f"{DRIVE}/stat": counters(100)})
    meter = StrainMeter(tmp_path, files, clock)
    assert meter.read() == MachineStrain(own_bytes_written=0, drive_bytes_written=0)
    system(tmp_path, {IO: io(9000, 500), f"{DRIVE}/stat": counters(104)})
    clock.now_s += LOOK_S / 2
    assert meter.read().own_bytes_written == 0, "looked too often"
    clock.now_s += LOOK_S
    assert meter.read() == MachineStrain(own_bytes_written=7500, drive_bytes_written=2048)
    system(tmp_path, {f"{DRIVE}/stat": "nothing"})
    clock.now_s += LOOK_S
    assert meter.read().drive_bytes_written is None


def test_strain_of_a_partition_is_that_of_its_drive(tmp_path: Path) -> None:
    disk = "/sys/devices/disk"
    files = system(
        tmp_path,
        {
            f"{disk}/stat": counters(8),
            f"{disk}/part/partition": 1,
            f"{disk}/part/stat": counters(2),
        },
    )
    link = tmp_path / DRIVE.lstrip("/")
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / disk.lstrip("/") / "part")
    clock = Clock()
    meter = StrainMeter(tmp_path, files, clock)
    system(tmp_path, {f"{disk}/stat": counters(10), f"{disk}/part/stat": counters(2)})
    assert meter.read().drive_bytes_written == 1024


def test_strain_shows_the_warmest_of_each_part(tmp_path: Path) -> None:
    files = system(
        tmp_path,
        {
            f"{DRIVE}/device/hwmon1/temp1_input": 42_850,
            f"{HWMON}/hwmon0/name": "coretemp",
            f"{HWMON}/hwmon0/temp1_input": 51_000,
            f"{HWMON}/hwmon1/name": "coretemp",
            f"{HWMON}/hwmon1/temp1_input": 63_000,
            f"{HWMON}/hwmon2/name": "amdgpu",
            f"{HWMON}/hwmon2/temp1_input": 70_000,
            f"{HWMON}/hwmon3/name": "acpitz",
            f"{HWMON}/hwmon3/temp1_input": 99_000,
            f"{HWMON}/hwmon4/name": "k10temp",
        },
    )
    found = StrainMeter(tmp_path, files, Clock()).read()
    assert found.drive_temperature_c == 42.85
    assert found.processor_temperature_c == 63.0
    assert found.card_temperature_c == 70.0


def test_strain_without_system_files_is_not_told(tmp_path: Path) -> None:
    meter = StrainMeter(tmp_path, SystemFiles(tmp_path))
    assert meter.read() == MachineStrain()
    meter.close()


class Cards:
    """NVML with cards of these degrees; None is a card that does not answer."""

    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self, degrees: list[int | None], *, fails: str = "") -> None:
        self._degrees = degrees
        self._fails = fails
        self.num_open = 0

    def nvmlInit(self) -> None:
        if self._fails == "init":
            raise self.NVMLError
        self.num_open += 1

    def nvmlShutdown(self) -> None:
        self.num_open -= 1

    def nvmlDeviceGetCount(self) -> int:
        if self._fails == "count":
            raise self.NVMLError
        return len(self._degrees)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        found = self._degrees[handle]
        if found is None:
            raise self.NVMLError
        return found


def test_cards_are_as_warm_as_the_warmest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cards = Cards([55, None, 61])
    monkeypatch.setitem(sys.modules, "pynvml", cards)
    meter = StrainMeter(tmp_path, SystemFiles(tmp_path))
    assert meter.read().card_temperature_c == 61.0
    assert cards.num_open == 1
    meter.close()
    meter.close()
    assert cards.num_open == 0


@pytest.mark.parametrize("cards", [Cards([]), Cards([None]), Cards([50], fails="init")])
def test_cards_that_tell_nothing_have_no_temperature(
    cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", cards)
    warmth = GpuWarmth()
    assert warmth.read() is None
    warmth.close()
    assert cards.num_open == 0


def test_cards_that_cannot_be_counted_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = Cards([50], fails="count")
    monkeypatch.setitem(sys.modules, "pynvml", cards)
    assert GpuWarmth().read() is None
    assert cards.num_open == 0
