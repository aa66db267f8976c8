"""The memory watch over a scripted model: what it proposes, what is told, what it leaves alone."""

import dataclasses
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.plan.pressure import CALM_S, MemoryNow, PressureRule
from runtime.protocol.messages import BudgetsAdapted, BudgetsSet, SetBudgets
from runtime.protocol.plan import PlacementPlan, ReasonCode
from runtime.protocol.values import Budgets
from runtime.service.memory_watch import Ground, MemoryWatch
from tests.support.scripted import TIMEOUT_S, ScriptedService, some_plan

MIB = 1024**2
RESERVE = 400 * MIB
PLENTY = 4000 * MIB


@dataclasses.dataclass
class Gauge:
    """Memory as a test says."""

    available_bytes: int = PLENTY

    def __call__(self) -> MemoryNow:
        return MemoryNow(
            available_bytes=self.available_bytes, own_bytes=2**40, reserve_bytes=RESERVE
        )


class WatchedService:
    """A scripted model under a watch whose looks and clock a test has in hand."""

    def __init__(self, folder: Path) -> None:
        self.gauge = Gauge()
        self.scripted = ScriptedService()
        self.scripted.load(1, folder)
        self.plan: PlacementPlan = some_plan(folder)
        self.now_s = 0.0
        service = self.scripted.service
        self.room = service._engine_room
        self.ground = Ground(
            planning=service._desk._planning,
            room=self.room,
            submit=service._desk.submit,
            sink=self.scripted._queue.put,
            error_log=service._error_log,
        )
        self.watch = MemoryWatch(self.gauge, self.ground, PressureRule(), lambda: self.now_s)

    def look(self, available_bytes: int, *, after_s: float = 0.5) -> None:
        """Let some time go and look at memory of which so much is left."""
        self.now_s += after_s
        self.gauge.available_bytes = available_bytes
        self.watch.look()

    def adapted(self) -> BudgetsAdapted:
        return self.scripted.wait_for(BudgetsAdapted)

    def settle(self) -> None:
        """Wait until the desk and the engine have done what they were asked."""
        for worker in (self.scripted.service._desk._worker, self.room._worker):
            is_done = threading.Event()
            worker.submit(is_done.set)
            assert is_done.wait(TIMEOUT_S)

    def num_told(self) -> int:
        """Return how often anything was told up to now."""
        return sum(isinstance(event, BudgetsAdapted) for event in self.scripted.drain())


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedService]:
    service = WatchedService(tmp_path)
    yield service
    assert service.scripted.service.close()


def test_watch_gives_back_and_takes_again(watched: WatchedService) -> None:
    whole = watched.plan
    watched.look(10 * MIB)
    less = watched.adapted()

    assert whole.min_ram_bytes <= less.plan.ram_bytes < whole.ram_bytes
    assert less.model.budget_bytes == less.plan.ram_bytes
    reason = less.plan.reasons[0]
    assert reason.code is ReasonCode.RAM_GIVEN_BACK
    assert reason.parameters == {
        "given_bytes": whole.ram_bytes - less.plan.ram_bytes,
        "wanted_bytes": whole.ram_bytes,
    }
    watched.look(PLENTY)
    watched.look(PLENTY, after_s=CALM_S)
    again = watched.adapted()

    assert again.plan.ram_bytes == whole.ram_bytes
    assert again.plan.budgets == whole.budgets
    assert again.plan.reasons[0].code is ReasonCode.RAM_TAKEN_AGAIN


def test_watch_with_nothing_left_gives_back_all_but_what_must_stay(
    watched: WatchedService,
) -> None:
    watched.look(-100_000 * MIB)
    least = watched.adapted().plan

    assert least.ram_bytes == least.min_ram_bytes
    assert least.problem is None
    for _ in range(3):
        watched.look(0, after_s=60.0)
        watched.settle()
    assert watched.num_told() == 1
    loaded = watched.room.loaded()
    assert loaded is not None
    assert loaded.plan is least


def test_watch_leaves_what_a_person_gives_as_the_wish(watched: WatchedService) -> None:
    plan = watched.plan
    given = (plan.min_ram_bytes + plan.ram_bytes) // 2
    watched.scripted.service.handle(
        SetBudgets(request_id=9, budgets=Budgets(ram_bytes=given, vram_bytes={}))
    )
    chosen = watched.scripted.wait_for(BudgetsSet).plan
    watched.look(10 * MIB)
    assert watched.adapted().plan.ram_bytes < chosen.ram_bytes
    watched.look(PLENTY)
    watched.look(PLENTY, after_s=CALM_S)

    assert watched.adapted().plan.ram_bytes == chosen.ram_bytes


def test_watch_without_a_model_or_with_room_does_nothing(watched: WatchedService) -> None:
    watched.look(PLENTY)
    watched.room._loaded, loaded = None, watched.room._loaded
    watched.look(0)
    watched.settle()
    watched.room._loaded = loaded

    assert watched.num_told() == 0


def test_watch_of_a_model_that_went_keeps_what_it_has(
    watched: WatchedService, tmp_path: Path
) -> None:
    gone = tmp_path.rename(tmp_path.with_name("gone"))
    watched.look(0)
    watched.settle()
    gone.rename(tmp_path)
    watched.look(0)
    watched.settle()
    assert watched.num_told() == 0
    watched.look(0, after_s=60.0)

    assert watched.adapted().plan.ram_bytes < watched.plan.ram_bytes


@pytest.mark.expects_log("runtime.service.log", "ERROR")
@pytest.mark.expects_log("runtime.service.memory_watch")
def test_watch_that_fails_is_in_the_log_and_goes_on(
    watched: WatchedService,
) -> None:
    looks: queue.SimpleQueue[int] = queue.SimpleQueue()

    def broken() -> MemoryNow:
        looks.put(1)
        raise ZeroDivisionError

    watch = MemoryWatch(broken, watched.ground)
    watch.start()
    watch.start()
    for _ in range(2):
        assert looks.get(timeout=TIMEOUT_S)
    assert watch.finish(TIMEOUT_S)


def test_watch_that_never_began_has_ended(watched: WatchedService) -> None:
    assert MemoryWatch(watched.gauge, watched.ground).finish(0.0)
