"""Hints: read only while nobody waits, handed over, forgotten when overtaken, never in the way."""

import contextlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.memory.ledger import Ledger
from runtime.residency.hints import NUM_CLASSES, Hints, Trust
from runtime.residency.lanes import ReadLanes
from runtime.residency.places import RamPlaces
from runtime.residency.shape import CacheShape
from runtime.residency.sizes import SlotSizes
from runtime.residency.trial import KEPT_STEPS, NUM_WINDOWS, WINDOW_STEPS, HintMode, HintTrial
from runtime.spec.tensors import ExpertId
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore, content
from tests.unit.residency.test_expert_cache import MOE_LAYERS, NUM_EXPERTS, make_bench

RECORD_BYTES = TINY_LAYOUT.record_bytes
LAYERS = (1, 2)


class GatedStore(DictionaryStore):
    """A store whose reads of chosen experts wait until they may go on."""

    def __init__(self, *gated: ExpertId, failing: frozenset[ExpertId] = frozenset()) -> None:
        super().__init__(failing=failing)
        self.gated = gated
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        if expert in self.gated:
            self.begun.release()
            assert self.gate.wait(30)
        super().read_expert(expert, target)


class Bench:
    """Hints over free slots, all of which are believed."""

    def __init__(self, store: DictionaryStore, num_slots: int = 8) -> None:
        self.counters = Counters()
        self.lanes = ReadLanes(store)
        sizes = SlotSizes(store, CacheShape(LAYERS, (1,) * len(LAYERS), NUM_EXPERTS))
        self.places = RamPlaces(Ledger(num_slots * RECORD_BYTES), sizes, LAYERS)
        for _ in range(num_slots):
            self.places.add(RECORD_BYTES)
        self.hints = Hints(
            self.lanes,
            self.places,
            self.counters,
            lambda layer: (num_slots, self.places.num_free(layer)),
        )
        self.hints.trust = Trust(0)

    def close(self) -> None:
        self.hints.withdraw()
        self.places.check()
        self.lanes.close()

    def outcomes(self) -> tuple[int, int, int]:
        counters = self.counters
        return counters.hints_useful, counters.hints_late, counters.hints_wasted


def test_hints_that_came_true_are_handed_over_filled() -> None:
    bench = Bench(DictionaryStore())
    bench.hints.guess(1, [5, 6, 7], resident={6})
    for hint in bench.hints._read.values():
        assert hint.reads.wait(hint.number) is None
    claimed = bench.hints.claim(1, [5, 3])
    assert [hint.expert for hint in claimed] == [5]
    assert bytes(bench.places.view(claimed[0].slot)[:1]) == content(ExpertId(1, 5))
    bench.places.give_back(claimed[0].slot)
    assert bench.outcomes() == (1, 0, 1)
    assert bench.places.num_free(1) == 8
    bench.close()


def test_hints_overtaken_by_a_demand_are_never_read() -> None:
    store = GatedStore(ExpertId(2, 0))
    bench = Bench(store)
    demanded = bench.lanes.demand([(ExpertId(2, 0), memoryview(bytearray(RECORD_BYTES)))])
    assert store.begun.acquire(timeout=30)
    bench.hints.guess(1, [5, 6], resident=())
    assert bench.hints.claim(1, [5, 6]) == []
    assert bench.places.num_free(1) == 8
    store.gate.set()
    assert demanded.wait(0) is None
    bench.close()
    assert store.read_experts == [ExpertId(2, 0)]
    assert bench.outcomes() == (0, 0, 0)


def test_hint_that_is_being_read_is_waited_for_and_counted_as_late() -> None:
    store = GatedStore(ExpertId(1, 5))
    bench = Bench(store)
    bench.hints.guess(1, [5], resident=())
    assert store.begun.acquire(timeout=30)
    (hint,) = bench.hints.claim(1, [5])
    store.gate.set()
    assert hint.reads.wait(hint.number) is None
    bench.places.give_back(hint.slot)
    assert bench.outcomes() == (0, 1, 0)
    bench.close()


def test_hint_that_is_being_read_in_vain_gives_its_slot_back_when_it_ends() -> None:
    store = GatedStore(ExpertId(1, 5))
    bench = Bench(store)
    bench.hints.guess(1, [5], resident=())
    assert store.begun.acquire(timeout=30)
    assert bench.hints.claim(1, [4]) == []
    assert bench.places.num_free(1) == 7
    store.gate.set()
    bench.hints.withdraw()
    assert bench.places.num_free(1) == 8
    assert bench.outcomes() == (0, 0, 1)
    bench.close()


def test_hint_that_could_not_be_read_is_nothing() -> None:
    bench = Bench(DictionaryStore(failing=frozenset({ExpertId(1, 5)})))
    bench.hints.guess(1, [5], resident=())
    for hint in bench.hints._read.values():
        assert hint.reads.wait(hint.number) is not None
    assert bench.hints.claim(1, [5]) == []
    assert bench.outcomes() == (0, 0, 0)
    bench.close()


def test_hints_take_at_most_half_of_the_slots_that_nobody_keeps() -> None:
    bench = Bench(DictionaryStore(), num_slots=4)
    bench.hints.guess(1, [5, 6, 7], resident=())
    assert bench.places.num_free(1) == 2
    bench.hints.begin()
    assert bench.places.num_free(1) == 2
    bench.close()


def test_hints_for_another_layer_than_the_one_that_asks_are_forgotten() -> None:
    bench = Bench(DictionaryStore())
    bench.hints.guess(1, [5], resident=())
    assert bench.hints.claim(2, [5]) == []
    bench.hints.withdraw()
    assert bench.places.num_free(1) == 8
    bench.close()


def test_trust_is_earned_and_lost_by_what_comes_true() -> None:
    trust = Trust(0.8)
    assert not any(trust.is_worth(quarter) for quarter in range(NUM_CLASSES))
    trust.learn(0, 4, 4)
    trust.learn(1, 3, 4)
    assert [trust.is_worth(quarter) for quarter in (0, 1)] == [True, False]
    trust.learn(0, 0, 4)
    assert not trust.is_worth(0)


def test_hints_are_not_read_before_they_are_trusted() -> None:
    store = DictionaryStore()
    bench = Bench(store)
    bench.hints.trust = Trust(0.8)
    bench.hints.guess(1, [5, 6], resident=())
    assert bench.places.num_free(1) == 8
    bench.hints.claim(1, [5, 6])
    bench.hints.guess(1, [5, 6], resident=())
    assert bench.places.num_free(1) == 6
    bench.close()


@given(
    slots=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    steps=st.lists(
        st.tuples(
            st.sampled_from(MOE_LAYERS),
            st.sets(st.integers(0, NUM_EXPERTS - 1), min_size=1),
            st.lists(st.integers(0, NUM_EXPERTS - 1), unique=True),
        ),
        max_size=20,
    ),
)
@settings(max_examples=40, deadline=None)
def test_expert_cache_any_guesses_slots_hold_the_right_experts_and_nobody_else_stays(
    slots: tuple[int, int], steps: list[tuple[int, set[int], list[int]]]
) -> None:
    cache = make_bench(slots).cache
    cache._ram.hints.trust = Trust(0)
    cache.set_hints(HintMode.ALWAYS)
    asked: dict[int, set[int]] = {layer: set() for layer in MOE_LAYERS}
    for layer, experts, guesses in steps:
        asked[layer] |= experts
        used: list[int] = []
        with contextlib.closing(cache.runs(layer, sorted(experts))) as runs:
            for run in runs:
                for expert, slot in run:
                    used.append(expert)
                    data = bytes(slot.data[:RECORD_BYTES])
                    assert data == content(ExpertId(layer, expert)) * RECORD_BYTES
                cache.guess(MOE_LAYERS[layer == MOE_LAYERS[0]], guesses)
        assert used == sorted(experts)
        for each in MOE_LAYERS:
            assert cache._ram.places.slot_of[each].keys() <= asked[each]
        cache._ram.hints.withdraw()
        cache.check()
        num_spare, num_free = cache._ram.residents.spare(layer)
        assert num_spare == num_free
    cache.close()


@pytest.mark.parametrize("ratio", [0.9, 0.99, 1.2])
def test_trial_keeps_what_takes_less_time_and_tries_again_later(ratio: float) -> None:
    trial = HintTrial(HintMode.MEASURED)
    for number in range(2 * NUM_WINDOWS * WINDOW_STEPS):
        assert trial.is_on == bool(number // WINDOW_STEPS % 2)
        is_held_up = number % WINDOW_STEPS == 1
        trial.note((ratio if trial.is_on else 1.0) + 50 * is_held_up)
    for _ in range(KEPT_STEPS):
        assert trial.is_on == (ratio == 0.9)
        trial.note(1.0)
    assert not trial.is_on
    trial.note(1.0)
    assert not trial.is_on


@pytest.mark.parametrize("mode", [HintMode.NEVER, HintMode.ALWAYS])
def test_trial_without_measuring_stays_as_it_was_chosen(mode: HintMode) -> None:
    trial = HintTrial(mode)
    for _ in range(3 * NUM_WINDOWS * WINDOW_STEPS):
        assert trial.is_on == (mode is HintMode.ALWAYS)
        trial.note(1.0)
