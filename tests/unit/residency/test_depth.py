"""The depth that a drive's own curve asks for."""

from collections.abc import Mapping

import pytest

from runtime.hardware.profile import MAX_DRIVE_READERS
from runtime.memory.ledger import Ledger
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES
from runtime.residency.books import Books
from runtime.residency.depth import DEPTHS, MIN_LAPS, USUAL_DEPTH, DepthCurve
from runtime.residency.lanes import ReadLanes
from runtime.residency.ram_experts import RamExperts
from runtime.residency.shape import CacheShape
from runtime.spec.footprint import policy_bytes
from runtime.spec.tensors import ExpertId
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore

NUM_EXPERTS = 8 * 16


def curve_of(rates: Mapping[int, float], num_laps: int = MIN_LAPS) -> DepthCurve:
    curve = DepthCurve()
    for _ in range(num_laps * len(DEPTHS)):
        depth = curve.next_depth
        curve.note(depth, 1000, 1000 / rates[depth])
    return curve


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ({1: 500, 2: 900, 4: 1000, 8: 1010}, 4),
        ({1: 500, 2: 900, 4: 1800, 8: 3600}, 8),
        ({1: 1000, 2: 980, 4: 900, 8: 700}, 1),
        ({1: 500, 2: 1000, 4: 1040, 8: 900}, 2),
    ],
)
def test_curve_chooses_the_smallest_depth_that_gives_enough(
    rates: dict[int, float], best: int
) -> None:
    assert curve_of(rates).best_depth == best


def test_curve_that_is_not_known_yet_gives_the_usual_depth() -> None:
    assert DepthCurve().best_depth == USUAL_DEPTH
    assert curve_of({1: 9, 2: 1, 4: 1, 8: 1}, num_laps=MIN_LAPS - 1).best_depth == USUAL_DEPTH


def test_curve_lap_without_time_tells_nothing() -> None:
    curve = DepthCurve()
    curve.note(1, 1000, 0)
    assert curve.next_depth == 1


class Drive:
    """A clock that a batch moves by what a drive would take with so many readers."""

    def __init__(self, best: int) -> None:
        self.best = best
        self.now_s = 0.0
        self.lanes: ReadLanes | None = None
        self._num_asked = 0

    def __call__(self) -> float:
        self._num_asked += 1
        if self.lanes is not None and self._num_asked % 2 == 0:
            self.now_s += 1.0 / min(self.lanes.num_readers, self.best)
        return self.now_s


@pytest.mark.parametrize("best", DEPTHS)
def test_fill_finds_the_depth_that_the_drive_likes_best(best: int) -> None:
    shape = CacheShape((0,), (NUM_EXPERTS,), NUM_EXPERTS)
    ledger = Ledger(NUM_EXPERTS * TINY_LAYOUT.record_bytes + policy_bytes(1, NUM_EXPERTS))
    drive, store = Drive(best), DictionaryStore()
    books = Books(Counters(), ExpertTally(1, NUM_EXPERTS, 32))
    ram = RamExperts(store, shape, ledger, books, POLICIES[DEFAULT_POLICY], drive)
    drive.lanes = ram._lanes
    ram.fill(NUM_EXPERTS, lambda *_: None)
    assert ram._lanes.num_readers == best
    assert sorted(store.read_experts) == [ExpertId(0, number) for number in range(NUM_EXPERTS)]
    ram.close()


def test_fill_tries_nothing_where_a_person_states_the_readers() -> None:
    shape = CacheShape((0,), (NUM_EXPERTS,), NUM_EXPERTS)
    ledger = Ledger(NUM_EXPERTS * TINY_LAYOUT.record_bytes + policy_bytes(1, NUM_EXPERTS))
    books = Books(Counters(), ExpertTally(1, NUM_EXPERTS, 32))
    drive, seen = Drive(8), set[int]()
    ram = RamExperts(DictionaryStore(), shape, ledger, books, POLICIES[DEFAULT_POLICY], drive)
    drive.lanes = ram._lanes
    ram.fix_readers(2)
    ram.fill(NUM_EXPERTS, lambda *_: seen.add(ram._lanes.num_readers))
    assert seen == {2}
    assert ram._lanes.num_readers == 2
    ram.close()


def test_as_many_readers_can_be_stated_as_there_are() -> None:
    assert max(DEPTHS) == MAX_DRIVE_READERS
