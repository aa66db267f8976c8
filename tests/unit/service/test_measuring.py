"""How fast RAM is read: when it is measured, and what else computed meanwhile."""

import types
from pathlib import Path

import pytest

from runtime.hardware.memory import HostMemory
from runtime.service import local_planning, measuring
from runtime.service.local_planning import LocalPlanning
from runtime.service.measuring import buffer_bytes
from runtime.service.prepared_places import PreparedPlaces
from runtime.spec.tensors import PAGE_BYTES


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else computes on this PC, and the tests say how fast its memory is.

    So little of it is taken that no time passes.
    """
    monkeypatch.setattr(measuring, "buffer_bytes", lambda *_: PAGE_BYTES)
    monkeypatch.setattr(measuring, "load_native", object)
    monkeypatch.setattr(local_planning, "kernels_name", lambda: "native")
    monkeypatch.setattr(measuring.Others, "cores", lambda _: 0.0)


@pytest.mark.usefixtures("alone")
def test_planning_measures_ram_once_a_day_and_keeps_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = tmp_path / "rates.json"
    runs: list[float] = []

    def read(*_sizes: int) -> float:
        runs.append(speed)
        return speed

    monkeypatch.setattr(measuring, "read_bandwidth", read)

    def told(planning: LocalPlanning) -> float:
        measured = planning.describe(()).ram_read_bytes_per_s
        assert measured is not None
        return measured.value

    speed = 2e9

    def another() -> LocalPlanning:
        return LocalPlanning(PreparedPlaces(tmp_path / "data"), rates)

    busy = another()
    assert told(busy) == 2e9
    num_runs = len(runs)
    assert told(busy) == 2e9
    speed = 3e10
    assert told(another()) == 2e9
    assert len(runs) == num_runs, "kept for a day"
    monkeypatch.setattr(measuring, "AGAIN_AFTER_S", 0.0)
    assert told(another()) == 3e10
    speed = 1e9
    assert told(another()) == 3e10, "whatever else runs only slows it"


@pytest.mark.usefixtures("alone")
def test_planning_measures_ram_of_a_busy_pc_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    rates, now_s, speed, busy_cores = tmp_path / "rates.json", 0.0, 8e9, 3.0
    runs: list[float] = []

    def read(*_sizes: int) -> float:
        runs.append(speed)
        return speed

    monkeypatch.setattr(measuring, "read_bandwidth", read)
    monkeypatch.setattr(measuring.Others, "cores", lambda _: busy_cores)

    def another() -> LocalPlanning:
        return LocalPlanning(PreparedPlaces(tmp_path / "data"), rates, now_s=lambda: now_s)

    def told(planning: LocalPlanning) -> tuple[float, str]:
        measured = planning.describe(()).ram_read_bytes_per_s
        assert measured is not None
        return measured.value, measured.method.partition("MiB")[2]

    planning = another()
    assert told(planning) == (8e9, ", while other programs took 3.0 of 8 cores")
    speed, busy_cores, now_s = 1e10, 0.9, 500.0
    assert told(planning) == (8e9, ", while other programs took 3.0 of 8 cores"), "too soon"
    now_s = 700.0
    assert told(planning) == (1e10, ", while other programs took 0.9 of 8 cores")
    speed = 9e9
    assert told(another())[0] == 1e10, "the best counts"
    busy_cores = 0.7
    assert told(another()) == (1e10, ""), "it cannot be less where nothing else ran"
    num_runs = len(runs)
    busy_cores, now_s = 3.0, 1e6
    assert told(planning) == (1e10, "")
    assert told(another()) == (1e10, "")
    assert len(runs) == num_runs, "kept for a day"


def test_others_take_what_this_process_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = types.SimpleNamespace(passed=10.0, own=1.0, busy=100.0)
    monkeypatch.setattr("time.perf_counter", lambda: clock.passed)
    monkeypatch.setattr("time.process_time", lambda: clock.own)
    times = dict.fromkeys(("user", "system", "steal", "idle", "iowait", "guest"), 0.0)

    def cpu_times() -> object:
        now = times | {"user": clock.busy, "steal": 2.0, "idle": 7 * clock.passed}
        return types.SimpleNamespace(_asdict=lambda: now)

    monkeypatch.setattr("psutil.cpu_times", cpu_times)
    others = measuring.Others()
    assert others.cores() == 0.0
    clock.passed, clock.own, clock.busy = 10.5, 1.75, 101.5
    assert others.cores() == 1.5
    clock.own = 4.0
    assert others.cores() == 0.0, "clocks that disagree a little"


@pytest.mark.parametrize(
    ("available_mib", "cache_mib", "read_mib"),
    [
        (16_000, 0, 1024),
        (64_000, 768, 1024),
        (64_000, 1100, 0),
        (2_000, 96, 500),
        (800, 32, 200),
        (800, 256, 0),
        (200, 8, 0),
    ],
)
def test_ram_is_measured_with_more_than_caches_hold(
    available_mib: int, cache_mib: int, read_mib: int
) -> None:
    assert buffer_bytes(available_mib << 20, cache_mib << 20) == read_mib << 20


def test_ram_of_a_pc_with_hardly_any_free_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "load_native", object)
    monkeypatch.setattr(measuring, "host_memory", lambda: HostMemory(1 << 30, 100 << 20))
    measuring.measure_ram(tmp_path / "rates.json")
    assert not (tmp_path / "rates.json").exists()


@pytest.mark.usefixtures("alone", "tmp_home")
def test_planning_measures_again_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = iter([3e10] * 3 + [2e10] * 3)
    monkeypatch.setattr(measuring, "read_bandwidth", lambda *_: next(speeds))
    planning = LocalPlanning(PreparedPlaces(tmp_path / "data"), tmp_path / "rates.json")

    def read(*, is_fresh: bool) -> float:
        figures = planning.figures("", is_fresh=is_fresh).figures
        (figure,) = (each for each in figures if each.name == "ram.read_gb_per_s")
        assert figure.found is not None
        return figure.found.value

    assert read(is_fresh=False) == 30.0
    assert read(is_fresh=False) == 30.0
    assert read(is_fresh=True) == 20.0, "the better day is forgotten"
