"""Planning and preparing what really lies in a folder, in this process and in a child."""

import dataclasses
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from runtime.engine.base import CancelToken
from runtime.engine.script import Script
from runtime.errors import LarderError
from runtime.hardware.power import EnergyMeter
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.rates import RateCache
from runtime.protocol.errors import ErrorCode
from runtime.protocol.hub import HubOutlook, HubSketch
from runtime.protocol.machine import DeviceReport, MachineReport, Measured
from runtime.protocol.messages import PrepareModel, PreparePhase
from runtime.protocol.plan import PlanKind
from runtime.protocol.values import Budgets, HitsBasis, WeightFormat
from runtime.service import local_planning
from runtime.service.drive_rates import rate_key, read_size
from runtime.service.local_planning import LocalPlanning, own_ram_bytes, with_held
from runtime.service.local_preparing import LocalPreparer
from runtime.service.prepare_child import ChildPreparer
from runtime.service.prepared_places import PreparedPlaces
from runtime.service.preparing import Preparer, PrepareStoppedError
from runtime.service.scripted import ScriptedPlanning
from runtime.spec.past import RoutingCounts
from tests.support.checkpoint_folders import write_checkpoint


@dataclasses.dataclass(frozen=True, slots=True)
class House:
    """A home with a model in it, and what looks after both."""

    model: Path
    planning: LocalPlanning
    preparer: LocalPreparer

    def prepare_command(self, output_folder: str = "") -> PrepareModel:
        return PrepareModel(
            request_id=1,
            folder=str(self.model),
            expert_format=WeightFormat.Q8_G32,
            output_folder=output_folder,
        )

    def plan_of(self, kind: PlanKind) -> tuple[bool, str]:
        planned = self.planning.plan(str(self.model), Budgets(), 0)
        plan = next(plan for plan in planned.plans if plan.kind is kind)
        return plan.needs_prepare, plan.store_folder


@pytest.fixture
def house(tmp_path: Path, tmp_home: Path) -> House:
    places = PreparedPlaces(tmp_home / "data")
    return House(
        write_checkpoint(tmp_path / "model"),
        LocalPlanning(places, tmp_home / "cache" / "rates.json"),
        LocalPreparer(tmp_home / "data", places),
    )


def ignore(_done: int, _total: int, _rate: float, _phase: PreparePhase) -> None:
    """Take progress and do nothing."""


def slow_child(folder: Path) -> ChildPreparer:
    """Return a preparer whose child plays a script that takes ten minutes."""
    script = folder / "slow.json"
    script.write_bytes(msgspec.json.encode(Script(prepare_s=600)))
    return ChildPreparer(("--engine", "scripted", "--script", str(script)))


def test_planning_of_a_model_has_plans_and_a_recommendation(house: House) -> None:
    planned = house.planning.plan(str(house.model), Budgets(), 0)
    assert planned.report.is_runnable
    assert planned.recommended is PlanKind.EXACT
    assert planned.plans[0].problem is None
    assert house.planning.inspect(str(house.model)) == planned.report


def test_suitability_is_that_of_the_own_routing_once_there_is_enough(house: House) -> None:
    report = house.planning.inspect(str(house.model))
    assert report.suitability is not None
    assert report.suitability.basis is HitsBasis.FAMILY
    kept = house.planning._past_runs
    counts = RoutingCounts((1000, 24, *[0] * 14, 1), (40, 60, 80), 100, 300)
    kept.add(report.fingerprint, None, None, counts)
    known = house.planning.plan(str(house.model), Budgets(), 0).report.suitability
    assert known == house.planning.inspect(str(house.model)).suitability
    assert known is not None
    assert (known.basis, known.num_tokens) == (HitsBasis.OWN, 300)
    assert known.hit_ratios == [0.4, 0.6, 0.8]


def test_forecast_by_a_config_is_that_of_the_model_itself(house: House) -> None:
    config = (house.model / "config.json").read_text()
    planned = house.planning.plan(str(house.model), Budgets(), 256)
    expected = next(plan for plan in planned.plans if plan.kind is planned.recommended).forecast
    tiny = Budgets(ram_bytes=1)
    found, unknown = house.planning.forecast(
        [HubSketch(config=config), HubSketch(config="{}")], str(house.model), Budgets(), 256
    )
    assert unknown == HubOutlook()
    assert house.planning.forecast([HubSketch(config=config)], str(house.model), tiny, 256) == [
        HubOutlook(is_too_large=True)
    ]
    assert found.forecast is not None
    assert not found.is_too_large
    assert expected is not None
    assert found.forecast.decode_tokens_per_s_high == pytest.approx(
        expected.decode_tokens_per_s_high, rel=0.05
    )


def test_planning_of_a_folder_without_a_model_has_its_problem_and_no_plans(
    house: House, tmp_path: Path
) -> None:
    planned = house.planning.plan(str(tmp_path / "missing"), Budgets(), 0)
    assert [problem.code for problem in planned.report.problems] == [ErrorCode.FOLDER_NOT_FOUND]
    assert (planned.plans, planned.recommended) == ([], None)


def test_planning_of_a_model_has_a_curve_and_of_no_model_none(house: House, tmp_path: Path) -> None:
    curve = house.planning.curve(str(house.model), PlanKind.EXACT, 0)
    assert curve is not None
    assert min(curve.context_tokens[-1:]) > 0
    assert house.planning.curve(str(tmp_path / "none"), PlanKind.EXACT, 0) is None


def test_planning_describes_the_drives_and_names_the_kernels(house: House) -> None:
    machine = house.planning.describe([str(house.model)])
    assert len(machine.drives) == 1
    assert machine.kernels == "reference" or machine.kernels.startswith("native-")
    again = house.planning.describe([])
    first, kept = machine.ram_read_bytes_per_s, again.ram_read_bytes_per_s
    assert (first and first.value) == (kept and kept.value), "measured once and kept"


@pytest.mark.parametrize("make", [lambda house: house.preparer, lambda _: ChildPreparer()])
def test_preparing_writes_a_copy_that_the_next_plan_finds(
    house: House, make: Callable[[House], Preparer]
) -> None:
    progress: list[tuple[int, int]] = []
    assert house.plan_of(PlanKind.EIGHT_BIT)[0]
    copy = make(house)(
        house.prepare_command(),
        lambda done, total, *_: progress.append((done, total)),
        CancelToken(),
    )
    assert progress[-1][0] == progress[-1][1] > 0
    assert house.plan_of(PlanKind.EIGHT_BIT) == (False, copy.folder)
    assert house.plan_of(PlanKind.FOUR_BIT)[0]


def test_preparing_elsewhere_is_found_too(house: House, tmp_path: Path) -> None:
    command = house.prepare_command(str(tmp_path / "elsewhere" / "copy"))
    copy = house.preparer(command, ignore, CancelToken())
    assert copy.folder == str(tmp_path / "elsewhere" / "copy")
    assert house.plan_of(PlanKind.EIGHT_BIT) == (False, copy.folder)


def test_dropped_copy_is_listed_once_and_used_by_plans_of_its_model(
    house: House, tmp_path: Path
) -> None:
    made = house.preparer(house.prepare_command(), ignore, CancelToken())
    moved = Path(made.folder).rename(tmp_path / "moved")
    assert house.plan_of(PlanKind.EIGHT_BIT)[0]
    for _ in range(2):
        report = house.planning.inspect(str(moved))
        assert report.folder == str(house.model)
        assert [copy.folder for copy in report.prepared] == [str(moved)]
    assert house.plan_of(PlanKind.EIGHT_BIT) == (False, str(moved))


def test_preparing_cancelled_says_what_is_kept(house: House) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(PrepareStoppedError) as raised:
        house.preparer(house.prepare_command(), ignore, cancel)
    assert raised.value.kept_bytes >= 0


@pytest.mark.parametrize("make", [lambda house: house.preparer, lambda _: ChildPreparer()])
def test_preparing_of_no_model_is_its_problem(
    house: House, tmp_path: Path, make: Callable[[House], Preparer]
) -> None:
    command = PrepareModel(
        request_id=1, folder=str(tmp_path / "missing"), expert_format=WeightFormat.Q8_G32
    )
    with pytest.raises(LarderError) as raised:
        make(house)(command, ignore, CancelToken())
    assert raised.value.code is ErrorCode.FOLDER_NOT_FOUND
    assert raised.value.parameters == {"folder": str(tmp_path / "missing")}


def test_child_imports_nothing_from_the_folder_that_larder_was_started_in(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started_in = tmp_path / "a model with code"
    started_in.mkdir()
    (started_in / "msgspec.py").write_text("raise SystemExit('imported from the working folder')")
    monkeypatch.chdir(started_in)
    command = PrepareModel(
        request_id=1, folder=str(tmp_path / "missing"), expert_format=WeightFormat.Q8_G32
    )
    with pytest.raises(LarderError) as raised:
        ChildPreparer()(command, ignore, CancelToken())
    assert raised.value.code is ErrorCode.FOLDER_NOT_FOUND


def test_child_cancelled_is_told_to_stop_and_gone(house: House, tmp_path: Path) -> None:
    cancel = CancelToken()
    with pytest.raises(PrepareStoppedError):
        slow_child(tmp_path)(house.prepare_command(), lambda *_: cancel.cancel(), cancel)


def test_child_that_dies_is_a_failed_preparation(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments: object, **options: object) -> object:
        started.append(popen(*arguments, **options))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr("runtime.service.prepare_child.subprocess.Popen", start)
    with pytest.raises(LarderError) as raised:
        slow_child(tmp_path)(
            house.prepare_command(),
            lambda *_: started[0].send_signal(signal.SIGKILL),
            CancelToken(),
        )
    assert raised.value.code is ErrorCode.PREPARE_FAILED
    assert "status -9" in str(raised.value.parameters["reason"])


def test_child_for_a_format_that_is_not_ours_is_refused(house: House) -> None:
    command = msgspec.structs.replace(house.prepare_command(), expert_format=WeightFormat.F32)
    with pytest.raises(LarderError) as raised:
        ChildPreparer()(command, ignore, CancelToken())
    assert raised.value.code is ErrorCode.SETTING_INVALID


def machine_with(method: str, devices: list[DeviceReport]) -> MachineReport:
    described = ScriptedPlanning(Script()).describe([])
    return msgspec.structs.replace(
        described,
        ram_total=Measured(value=100.0, method="psutil total"),
        ram_available=Measured(value=30.0, method=method),
        devices=devices,
    )


def test_with_held_counts_what_this_process_holds_as_free() -> None:
    card = DeviceReport(device="cuda:0", name="card", total_bytes=10, free_bytes=2)
    pretended = DeviceReport(
        device="simulated:0", name="card", total_bytes=10, free_bytes=2, is_simulated=True
    )
    machine = machine_with("psutil available", [card, pretended])
    held = with_held(machine, 20, {"cuda:0": 5, "simulated:0": 5})
    assert held.ram_available.value == 50.0
    assert [device.free_bytes for device in held.devices] == [7, 2]
    assert with_held(machine, 1000, {}).ram_available.value == 100.0


def test_with_held_leaves_what_a_profile_states() -> None:
    machine = machine_with("profile", [])
    assert with_held(machine, 20, {}) == machine


def test_own_ram_grows_with_what_is_taken() -> None:
    before = own_ram_bytes()
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    assert own_ram_bytes() - before > 48 << 20


def test_describing_this_pc_lets_go_of_the_energy_counters(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(EnergyMeter, "close", lambda _meter: closed.append(True))
    house.planning.describe([])
    assert closed == [True]


def test_inspecting_a_model_with_a_broken_chat_template_names_it(house: House) -> None:
    (house.model / "chat_template.jinja").write_text("{% for message in messages %}")
    report = house.planning.inspect(str(house.model))
    assert [each.code for each in report.problems] == [ErrorCode.CHAT_TEMPLATE_INVALID]
    assert house.planning.plan(str(house.model), Budgets(), 0).plans == []


def test_planning_states_figures_that_count_in_plans_and_takes_them_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MACHINE_VARIABLE, "")
    planning = house.planning
    found = {each.name: each for each in planning.figures(str(house.model)).figures}
    assert found["ram.total_gib"].found is not None
    assert found["drive.read_gb_per_s"].stated is None
    assert planning.plan(str(house.model), Budgets(), 0).recommended is not None
    planning.state_figure("ram.total_gib", 0.0001)
    told = planning.figures(str(house.model))
    assert Path(told.file).name == "machine.json"
    stated = {each.name: each for each in told.figures}["ram.total_gib"]
    assert (stated.stated, stated.found) == (0.0001, found["ram.total_gib"].found)
    assert planning.plan(str(house.model), Budgets(), 0).recommended is None
    planning.state_figure("ram.total_gib", None)
    assert planning.plan(str(house.model), Budgets(), 0).recommended is not None


def test_a_file_of_stated_figures_that_goes_or_comes_counts_from_the_next_plan_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MACHINE_VARIABLE, "")
    planning = house.planning
    planning.state_figure("ram.total_gib", 0.0001)
    file = Path(planning.figures(str(house.model)).file)
    content = file.read_text()
    assert planning.plan(str(house.model), Budgets(), 0).recommended is None

    file.unlink()
    planned = planning.plan(str(house.model), Budgets(), 0)
    assert planned.recommended is not None
    assert planned.stated is None
    assert all(each.stated is None for each in planning.figures(str(house.model)).figures)

    file.write_text(content)
    planned = planning.plan(str(house.model), Budgets(), 0)
    assert planned.recommended is None
    assert planned.stated is not None

    file.write_text("{")
    with pytest.raises(LarderError) as caught:
        planning.plan(str(house.model), Budgets(), 0)
    assert caught.value.code is ErrorCode.MACHINE_FILE_INVALID


def test_plans_name_the_figures_that_are_stated_and_what_was_found_instead(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MACHINE_VARIABLE, "")
    planning = house.planning
    assert planning.plan(str(house.model), Budgets(), 0).stated is None
    planning.state_figure("drive.read_gb_per_s", 4.5)
    planning.state_figure("energy_sources", "none")
    key = rate_key(
        str(house.model), read_size(house.planning.inspect(str(house.model)).expert_bytes)
    )
    assert key is not None
    RateCache(planning._rates_path).record(key, 3e9, "uncached reads")
    stated = planning.plan(str(house.model), Budgets(), 0).stated
    assert stated is not None
    assert (Path(stated.file).name, stated.is_fixed) == ("machine.json", False)
    drive, sources = stated.figures
    assert (drive.name, drive.stated) == ("drive.read_gb_per_s", 4.5)
    assert drive.found is not None
    assert (drive.found.value, drive.found.method) == (3.0, "uncached reads")
    assert (sources.name, sources.stated_text) == ("energy_sources", "none")
    named = tmp_path / "mine.json"
    named.write_text('{"devices": [{"total_gib": 1}]}')
    monkeypatch.setenv(MACHINE_VARIABLE, str(named))
    assert planning.plan(str(house.model), Budgets(), 0).stated is None, "a card is no figure"
    named.write_text('{"num_threads": 1}')
    stated = planning.plan(str(house.model), Budgets(), 0).stated
    assert stated is not None
    assert stated.is_fixed


@pytest.mark.parametrize("text", ['{"ram": 5}', '{"cards": [5]}', '{"cards": 5}', '{"drive": []}'])
def test_planning_names_the_field_of_a_profile_that_was_written_wrongly(
    house: House, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(MACHINE_VARIABLE, "")
    house.planning.state_figure("num_threads", 1)
    place = Path(house.planning.figures("").file)
    place.write_text(text)
    changes = (
        lambda: house.planning.state_figure("ram.total_gib", 4),
        lambda: house.planning.state_figure("cards[cuda:0].free_gib", 4),
        lambda: house.planning.figures(""),
    )
    for change in changes:
        with pytest.raises(LarderError) as refused:
            change()
        assert refused.value.code is ErrorCode.MACHINE_FILE_INVALID
        assert refused.value.parameters["file"] == str(place)
    assert place.read_text() == text


def test_planning_changes_nothing_in_a_profile_that_was_named_for_this_run(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "mine.json"
    named.write_text('{"num_threads": 1}')
    monkeypatch.setenv(MACHINE_VARIABLE, str(named))
    assert house.planning.figures("").is_fixed
    with pytest.raises(LarderError) as refused:
        house.planning.state_figure("num_threads", 2)
    assert refused.value.code is ErrorCode.SETTING_INVALID
    assert named.read_text() == '{"num_threads": 1}'


def test_planning_counts_what_a_loaded_model_holds_as_free_in_what_it_tells(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_planning, "own_ram_bytes", lambda: 1 << 20)
    alone = house.planning.describe([]).ram_available
    beside = house.planning.describe([], {}).ram_available
    assert "holds" not in alone.method
    assert beside.method.endswith("and what this program holds")
    figures = {each.name: each for each in house.planning.figures("", {}).figures}
    told = figures["ram.available_gib"].found
    assert told is not None
    assert told.method == beside.method
