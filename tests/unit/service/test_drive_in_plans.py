"""The drive of a model: measured at the size of its experts, and what plans rest on."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from runtime.plan.memory import room_of, vram_room_of
from runtime.protocol.machine import DriveReport, Measured
from runtime.protocol.model import ModelReport
from runtime.protocol.values import Budgets
from runtime.service.drive_rates import DriveRates
from runtime.service.local_planning import LocalPlanning
from runtime.service.prepared_places import PreparedPlaces
from tests.support.checkpoint_folders import write_checkpoint

METHOD = "as this test says"


class NotedRates(DriveRates):
    """Tells one rate for each drive, and notes at which size it was to be measured."""

    def __init__(self, rates_path: Path, bytes_per_s: float) -> None:
        super().__init__(rates_path)
        self.bytes_per_s = bytes_per_s
        self.asked: list[tuple[list[str], int]] = []

    def complete(self, drives: list[DriveReport], read_bytes: int) -> list[DriveReport]:
        self.asked.append(([drive.folder for drive in drives], read_bytes))
        rate = Measured(value=self.bytes_per_s, method=METHOD)
        return [msgspec.structs.replace(drive, read_bytes_per_s=rate) for drive in drives]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model")


@pytest.fixture
def rates(tmp_home: Path) -> NotedRates:
    return NotedRates(tmp_home / "cache" / "rates.json", 1e9)


@pytest.fixture
def planning(tmp_home: Path, rates: NotedRates) -> LocalPlanning:
    places = PreparedPlaces(tmp_home / "data")
    return LocalPlanning(places, tmp_home / "cache" / "rates.json", rates)


@pytest.fixture
def report(planning: LocalPlanning, model: Path) -> ModelReport:
    report = planning.inspect(str(model))
    assert report.expert_bytes > 0
    return report


@pytest.mark.parametrize(
    "ask",
    [
        lambda planning, model: planning.plan(str(model), Budgets(), 0),
        lambda planning, model: planning.describe([str(model)]),
        lambda planning, model: planning.describe([str(model.parent), str(model)]),
    ],
    ids=["a plan", "the doctor", "the doctor, of two folders"],
)
def test_drive_of_a_model_is_measured_at_the_size_of_its_experts(
    planning: LocalPlanning,
    rates: NotedRates,
    report: ModelReport,
    model: Path,
    ask: Callable[[LocalPlanning, Path], object],
) -> None:
    ask(planning, model)
    ((folders, read_bytes),) = rates.asked
    assert str(model) in folders
    assert read_bytes == report.expert_bytes


def test_drive_without_a_model_is_measured_at_the_usual_size(
    planning: LocalPlanning, rates: NotedRates, tmp_path: Path
) -> None:
    (drive,) = planning.describe([str(tmp_path)]).drives
    assert rates.asked == [([str(tmp_path)], 0)]
    assert drive.read_bytes_per_s == Measured(value=1e9, method=METHOD)


def test_plan_from_the_drive_rests_on_its_measured_rate(
    planning: LocalPlanning, rates: NotedRates, model: Path
) -> None:
    least = planning.plan(str(model), Budgets(), 0).plans[0].min_ram_bytes
    decode_rates: list[float] = []
    for bytes_per_s in (1e9, 1e4):
        rates.bytes_per_s = bytes_per_s
        plan = planning.plan(str(model), Budgets(ram_bytes=least), 0).plans[0]
        assert plan.forecast is not None
        assert plan.forecast.drive_bytes_per_token > 0
        decode_rates.append(plan.forecast.decode_tokens_per_s_high)
    assert decode_rates[1] < 0.1 * decode_rates[0]


def test_machine_says_what_stays_free_of_its_memory(planning: LocalPlanning) -> None:
    machine = planning.describe([])
    assert machine.ram_reserve_bytes == room_of(machine).reserve_bytes > 0
    assert [device.reserve_bytes for device in machine.devices] == [
        vram_room_of(device).reserve_bytes for device in machine.devices
    ]
