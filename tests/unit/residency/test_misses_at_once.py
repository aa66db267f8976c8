"""A layer's misses: all are with the readers before anything waits for the first of them."""

import contextlib
from collections.abc import Sequence

import pytest

from runtime.memory.ledger import Ledger
from runtime.residency.books import Books
from runtime.residency.depth import USUAL_DEPTH
from runtime.residency.experts import ExpertCache
from runtime.residency.lanes import DemandedReads, ReadLanes
from runtime.residency.shape import CacheShape
from runtime.spec.footprint import policy_bytes
from runtime.spec.tensors import ExpertId
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, GatedStore

LAYER = 1
NUM_EXPERTS = 12
RESIDENT = (0, 1, 2, 3)
TOP_K = 8
"""As many as a token chooses; so many slots are set aside for experts that do not stay."""


class WatchedLane:
    """Notes what is handed to the lane, and what was with it when a wait began."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.handed: list[ExpertId] = []
        self.handed_at_waits: list[tuple[ExpertId, ...]] = []
        demand, wait = ReadLanes.demand, DemandedReads.wait

        def watched_demand(
            lanes: ReadLanes, work: Sequence[tuple[ExpertId, memoryview]]
        ) -> DemandedReads:
            self.handed += [expert for expert, _ in work]
            return demand(lanes, work)

        def watched_wait(reads: DemandedReads, number: int) -> BaseException | None:
            self.handed_at_waits.append(tuple(self.handed))
            store_gate.set()
            return wait(reads, number)

        self.store = GatedStore()
        store_gate = self.store.gate
        monkeypatch.setattr(ReadLanes, "demand", watched_demand)
        monkeypatch.setattr(DemandedReads, "wait", watched_wait)


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> WatchedLane:
    """A lane over a store in which no read ends before something waits for one."""
    return WatchedLane(monkeypatch)


@pytest.fixture
def cache(lane: WatchedLane) -> ExpertCache:
    """A cache of four slots with four experts in them."""
    shape = CacheShape((LAYER,), (len(RESIDENT),), NUM_EXPERTS, num_staging=TOP_K)
    num_slots = shape.with_staging(len(RESIDENT), 1)
    ledger = Ledger(num_slots * TINY_LAYOUT.record_bytes + policy_bytes(1, NUM_EXPERTS))
    made = ExpertCache(
        lane.store, shape, ledger, Books(Counters(), ExpertTally(1, NUM_EXPERTS, 32))
    )
    made.fill(len(RESIDENT), lambda done, total: None)
    while lane.store.begun.acquire(blocking=False):
        pass
    lane.store.gate.clear()
    lane.handed.clear()
    lane.handed_at_waits.clear()
    return made


@pytest.mark.parametrize(
    "chosen",
    [tuple(range(4, 12)), (0, 1, 5, 6, 7, 8, 9, 10), (4, 5, 6, 7, 8, 9, 10, 3), (2, 11)],
    ids=["all miss", "hits first", "a hit last", "one of two"],
)
def test_misses_of_a_layer_are_all_requested_before_the_first_is_waited_for(
    lane: WatchedLane, cache: ExpertCache, chosen: tuple[int, ...]
) -> None:
    misses = [ExpertId(LAYER, expert) for expert in chosen if expert not in RESIDENT]
    with contextlib.closing(cache.runs(LAYER, chosen)) as runs:
        used = [expert for run in runs for expert, _ in run]

    assert used == list(chosen)
    assert lane.handed == misses
    assert len(lane.handed_at_waits) == len(misses)
    assert lane.handed_at_waits[0] == tuple(misses)
    cache.check()
    cache.close()


def test_misses_are_being_read_while_the_hits_before_them_are_computed(
    lane: WatchedLane, cache: ExpertCache
) -> None:
    with contextlib.closing(cache.runs(LAYER, [0, 1, 5, 6, 7, 8, 9, 10])) as runs:
        assert [expert for expert, _ in next(runs)] == [0, 1]
        for _ in range(USUAL_DEPTH):
            assert lane.store.begun.acquire(timeout=30)
        assert lane.handed == [ExpertId(LAYER, expert) for expert in range(5, 11)]
        assert lane.handed_at_waits == []
        assert not lane.store.gate.is_set()
        assert [expert for run in runs for expert, _ in run] == [5, 6, 7, 8, 9, 10]
    cache.check()
    cache.close()
