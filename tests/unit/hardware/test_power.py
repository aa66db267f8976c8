"""Energy counters: which count, what happens when they are full, unreadable or absent."""

import sys
import types
from pathlib import Path

import pytest

from runtime.hardware.energy_terms import EnergyTerms
from runtime.hardware.gpu_energy import GpuEnergy
from runtime.hardware.power import EnergyMeter, stated_terms
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.system_files import SystemFiles
from tests.support.fake_systems import system

RAPL = "/sys/class/powercap/intel-rapl:"
FULL_UJ = 262_143_000_000


@pytest.fixture(autouse=True)
def no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)


def rapl(**counters: int) -> dict[str, str | int]:
    """Return a tree with one counter for each of ``package``, ``dram``, ``core`` and ``psys``."""
    names = {"package": ("0", "package-0"), "core": ("0:0", "core"), "dram": ("0:1", "dram")}
    names["psys"] = ("1", "psys")
    tree: dict[str, str | int] = {}
    for kind, value in counters.items():
        entry, name = names[kind]
        tree[f"{RAPL}{entry}/name"] = name
        tree[f"{RAPL}{entry}/max_energy_range_uj"] = FULL_UJ
        tree[f"{RAPL}{entry}/energy_uj"] = value
    return tree


def battery(status: str, **values: int) -> dict[str, str | int]:
    folder = "/sys/class/power_supply/BAT0"
    return {f"{folder}/status": status} | {
        f"{folder}/{name}": value for name, value in values.items()
    }


def test_energy_meter_adds_domains_that_do_not_overlap(tmp_path: Path) -> None:
    files = system(tmp_path, rapl(package=1_000_000, dram=500_000, core=7, psys=9))
    meter = EnergyMeter(files)
    assert meter.sources == ["rapl:package-0", "rapl:dram-0"]
    meter.start()
    system(tmp_path, rapl(package=4_000_000, dram=1_000_000, core=99, psys=99))
    parts = meter.stop()
    assert [(part.source, part.joules) for part in parts] == [
        ("rapl:package-0", 3.0),
        ("rapl:dram-0", 0.5),
    ]
    assert all(part.is_measured for part in parts)


def test_energy_meter_counter_that_was_full_goes_on(tmp_path: Path) -> None:
    meter = EnergyMeter(system(tmp_path, rapl(package=FULL_UJ - 1_000_000)))
    meter.start()
    system(tmp_path, rapl(package=2_000_000))
    assert meter.stop()[0].joules == pytest.approx(3.0)


def test_energy_meter_without_counters_measures_nothing(tmp_path: Path) -> None:
    meter = EnergyMeter(SystemFiles(tmp_path))
    meter.start()
    assert meter.sources == []
    assert meter.stop() == []


def test_energy_meter_stop_without_start_is_empty(tmp_path: Path) -> None:
    meter = EnergyMeter(system(tmp_path, rapl(package=5)))
    assert meter.stop() == []
    meter.start()
    meter.stop()
    assert meter.stop() == []


def test_energy_meter_counter_that_may_not_be_read_is_left_out(tmp_path: Path) -> None:
    files = system(tmp_path, rapl(package=5, dram=5))
    (tmp_path / f"{RAPL}0/energy_uj".lstrip("/")).unlink()
    meter = EnergyMeter(files)
    meter.start()
    assert [part.source for part in meter.stop()] == ["rapl:dram-0"]


def test_energy_meter_counter_that_vanishes_is_left_out(tmp_path: Path) -> None:
    meter = EnergyMeter(system(tmp_path, rapl(package=5)))
    meter.start()
    (tmp_path / f"{RAPL}0/energy_uj".lstrip("/")).unlink()
    assert meter.stop() == []


def test_energy_meter_domain_without_range_is_left_out(tmp_path: Path) -> None:
    files = system(tmp_path, {f"{RAPL}0/name": "package-0", f"{RAPL}0/energy_uj": 5})
    assert EnergyMeter(files).sources == []


def test_energy_meter_battery_counts_where_nothing_else_does(tmp_path: Path) -> None:
    meter = EnergyMeter(system(tmp_path, battery("Discharging", energy_now=50_000_000)))
    assert meter.sources == ["battery"]
    meter.start()
    system(tmp_path, battery("Discharging", energy_now=49_990_000))
    (part,) = meter.stop()
    assert part.source == "battery"
    assert part.joules == pytest.approx(36.0)


def test_energy_meter_battery_in_charge_is_multiplied_by_volts(tmp_path: Path) -> None:
    meter = EnergyMeter(
        system(tmp_path, battery("Discharging", charge_now=4_000_000, voltage_now=12_000_000))
    )
    meter.start()
    system(tmp_path, battery("Discharging", charge_now=3_999_000))
    assert meter.stop()[0].joules == pytest.approx(43.2)


@pytest.mark.parametrize(
    "tree",
    [
        battery("Charging", energy_now=1),
        battery("Discharging"),
        battery("Discharging", charge_now=5),
    ],
)
def test_energy_meter_battery_that_tells_nothing_is_left_out(
    tmp_path: Path, tree: dict[str, str | int]
) -> None:
    assert EnergyMeter(system(tmp_path, tree)).sources == []


def test_energy_meter_battery_within_one_step_tells_nothing(tmp_path: Path) -> None:
    meter = EnergyMeter(system(tmp_path, battery("Discharging", energy_now=50_000_000)))
    meter.start()
    assert meter.stop() == []


def test_energy_meter_processor_goes_before_battery(tmp_path: Path) -> None:
    tree = rapl(package=5) | battery("Discharging", energy_now=50_000_000)
    meter = EnergyMeter(system(tmp_path, tree))
    meter.start()
    system(tmp_path, battery("Discharging", energy_now=40_000_000))
    assert [part.source for part in meter.stop()] == ["rapl:package-0"]


def test_system_files_folder_that_cannot_be_listed_is_empty(tmp_path: Path) -> None:
    assert SystemFiles(tmp_path).folders("/nothing", "*") == []


class Cards:
    """NVML with two cards, of which the second does not count energy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.millijoules: int | None = 7000
        self.num_open = 0
        self.module = types.ModuleType("pynvml")
        self.error = type("NVMLError", (Exception,), {})
        members: dict[str, object] = {
            "NVMLError": self.error,
            "nvmlInit": self._open,
            "nvmlShutdown": self._close,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetTotalEnergyConsumption": self._energy,
        }
        for name, member in members.items():
            setattr(self.module, name, member)
        monkeypatch.setitem(sys.modules, "pynvml", self.module)

    def _open(self) -> None:
        self.num_open += 1

    def _close(self) -> None:
        self.num_open -= 1

    def _energy(self, handle: int) -> int:
        if handle or self.millijoules is None:
            raise self.error
        return self.millijoules


@pytest.fixture
def cards(no_cards: None, monkeypatch: pytest.MonkeyPatch) -> Cards:
    return Cards(monkeypatch)


def test_energy_meter_adds_the_cards_that_count(tmp_path: Path, cards: Cards) -> None:
    meter = EnergyMeter(system(tmp_path, rapl(package=0)))
    assert meter.sources == ["rapl:package-0", "nvml:0"]
    meter.start()
    cards.millijoules = 9500
    system(tmp_path, rapl(package=1_000_000))
    assert [(part.source, part.joules) for part in meter.stop()] == [
        ("rapl:package-0", 1.0),
        ("nvml:0", 2.5),
    ]
    meter.close()
    meter.close()
    assert cards.num_open == 0


def test_energy_meter_battery_stands_for_the_cards(tmp_path: Path, cards: Cards) -> None:
    meter = EnergyMeter(system(tmp_path, battery("Discharging", energy_now=50_000_000)))
    assert meter.sources == ["battery"]
    meter.start()
    cards.millijoules = 8000
    assert [part.source for part in meter.stop()] == ["nvml:0"]
    meter.start()
    system(tmp_path, battery("Discharging", energy_now=49_990_000))
    assert [part.source for part in meter.stop()] == ["battery"]


def test_energy_meter_card_that_starts_again_has_used_nothing(tmp_path: Path, cards: Cards) -> None:
    meter = EnergyMeter(SystemFiles(tmp_path))
    meter.start()
    cards.millijoules = 3
    assert [part.joules for part in meter.stop()] == [0.0]
    meter.start()
    cards.millijoules = None
    assert meter.stop() == []


def test_gpu_energy_without_counters_closes_the_library(cards: Cards) -> None:
    cards.millijoules = None
    gpus = GpuEnergy()
    assert gpus.read() == {}
    assert cards.num_open == 0
    gpus.close()
    assert cards.num_open == 0


@pytest.mark.parametrize("name", ["nvmlInit", "nvmlDeviceGetCount"])
def test_gpu_energy_library_that_fails_has_no_counters(
    cards: Cards, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail() -> int:
        raise cards.error

    monkeypatch.setattr(cards.module, name, fail)
    gpus = GpuEnergy()
    assert gpus.read() == {}
    assert cards.num_open == 0


def test_energy_meter_counts_what_a_person_lets_count(tmp_path: Path) -> None:
    tree = rapl(package=5, dram=5) | battery("Discharging", energy_now=50_000_000)
    files = system(tmp_path, tree)

    def sources(*names: str) -> list[str]:
        return EnergyMeter(files, terms=EnergyTerms(sources=frozenset(names))).sources

    assert EnergyMeter(files).sources == ["rapl:package-0", "rapl:dram-0"]
    assert EnergyMeter(files).choosable == ["rapl:package-0", "rapl:dram-0", "battery"]
    assert sources() == []
    assert sources("rapl:dram-0") == ["rapl:dram-0"]
    # The battery counts where no counter of the processor does.
    assert sources("battery") == ["battery"]
    assert sources("battery", "rapl:package-0") == ["rapl:package-0"]


def test_energy_meter_card_counts_whatever_else_does(tmp_path: Path) -> None:
    class Card(GpuEnergy):
        def read(self) -> dict[str, int]:
            return {"nvml:0": 5}

    files = system(tmp_path, rapl(package=5))
    meter = EnergyMeter(files, Card(), terms=EnergyTerms(sources=frozenset()))
    assert meter.sources == ["nvml:0"]
    assert meter.choosable == []


def test_terms_are_those_of_the_profile_and_assumed_without(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    env = {MACHINE_VARIABLE: str(path)}
    assert stated_terms({}) == EnergyTerms()
    path.write_text("{}")
    assert stated_terms(env) == EnergyTerms()
    path.write_text(
        '{"pc_watts": 90, "rest_watts": 30, "drive": {"joules_per_gb": 0},'
        ' "energy_sources": "battery, rapl:package-0"}'
    )
    sources = frozenset({"battery", "rapl:package-0"})
    assert stated_terms(env) == EnergyTerms(
        pc_watts=90, rest_watts=30, drive_j_per_gb=0, sources=sources
    )
    path.write_text('{"energy_sources": "none"}')
    assert stated_terms(env) == EnergyTerms(sources=frozenset())
