"""RAM slots of the size of their layer: right experts, exact bytes, exchange within a size."""

import contextlib
import mmap
import threading
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.memory import arena
from runtime.memory.ledger import Ledger
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.residency.books import Books
from runtime.residency.experts import ExpertCache
from runtime.residency.hints import Trust
from runtime.residency.shape import CacheShape
from runtime.residency.trial import HintMode
from runtime.spec.footprint import policy_bytes
from runtime.spec.tensors import ExpertId, ExpertLayout, expert_layout
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore, content

LARGE_LAYOUT = expert_layout(WeightFormat.F32, 64, 16)
SMALL, LARGE = TINY_LAYOUT.record_bytes, LARGE_LAYOUT.record_bytes
LAYERS, NUM_EXPERTS, NUM_STAGING = (1, 4, 6), 8, 3
LAYERS_OF = {SMALL: (1, 6), LARGE: (4,)}
LayoutOf = Callable[[ExpertId], ExpertLayout]
SLOTS = st.lists(st.integers(1, NUM_EXPERTS), min_size=3, max_size=3) | st.just([NUM_EXPERTS] * 3)


class SizedStore(DictionaryStore):
    """A store whose experts have several sizes; notes the sizes of what it is given to fill."""

    def __init__(self, layout_of: LayoutOf) -> None:
        super().__init__(LARGE_LAYOUT)
        self._layout_of = layout_of
        self.targets: set[tuple[int, int]] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Semaphore(0)

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        return self._layout_of(expert)

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        self.begun.release()
        assert self.gate.wait(30)
        num_bytes = self._layout_of(expert).record_bytes
        target[:num_bytes] = content(expert) * num_bytes
        self.targets.add((expert.layer, len(target)))


def by_layer(expert: ExpertId) -> ExpertLayout:
    return LARGE_LAYOUT if expert.layer == 4 else TINY_LAYOUT


def within_a_layer(expert: ExpertId) -> ExpertLayout:
    """One expert of layer 4 is large, the others are small."""
    return LARGE_LAYOUT if expert == ExpertId(4, 3) else TINY_LAYOUT


def bytes_of(slots: Sequence[int], layout_of: LayoutOf) -> int:
    """Return what experts take with such slots, found in the plainest way."""
    kept_bytes = policy_bytes(len(LAYERS), NUM_EXPERTS)
    if sum(slots) == len(LAYERS) * NUM_EXPERTS:
        experts = [ExpertId(layer, expert) for layer in LAYERS for expert in range(NUM_EXPERTS)]
        return kept_bytes + sum(layout_of(expert).record_bytes for expert in experts)
    for size, layers in LAYERS_OF.items():
        number = sum(slots[LAYERS.index(layer)] for layer in layers)
        num_absent = len(layers) * NUM_EXPERTS - number
        kept_bytes += size * (number + min(NUM_STAGING, num_absent))
    return kept_bytes


class Bench:
    """A cache whose budget is exactly what its slots take."""

    def __init__(
        self, slots: Sequence[int], layout_of: LayoutOf = by_layer, policy: str = DEFAULT_POLICY
    ) -> None:
        self.layout_of = layout_of
        self.store = SizedStore(layout_of)
        self.ledger = Ledger(bytes_of(slots, layout_of))
        shape = CacheShape(LAYERS, tuple(slots), NUM_EXPERTS, num_staging=NUM_STAGING)
        books = Books(Counters(), ExpertTally(len(LAYERS), NUM_EXPERTS, 32))
        self.cache = ExpertCache(self.store, shape, self.ledger, books, POLICIES[policy])

    def use(self, layer: int, experts: Sequence[int]) -> None:
        used: list[int] = []
        with contextlib.closing(self.cache.runs(layer, experts)) as runs:
            for run in runs:
                for expert, slot in run:
                    key = ExpertId(layer, expert)
                    num_bytes = self.layout_of(key).record_bytes
                    assert bytes(slot.data[:num_bytes]) == content(key) * num_bytes
                    used.append(expert)
        assert used == list(experts)

    def check(self, slots: Sequence[int]) -> None:
        """Assert that each size has its share of slots, and that they take what they should."""
        self.cache.check()
        here = self.cache.slots_per_layer
        for layers in LAYERS_OF.values():
            places = [LAYERS.index(layer) for layer in layers]
            assert sum(here[place] for place in places) == sum(slots[place] for place in places)
        assert self.ledger.held_bytes == self.ledger.limit_bytes == bytes_of(slots, self.layout_of)


class Shortage:
    """Memory that the system refuses now and then."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._refused: set[int] = set()
        self._num_asked = 0
        self._map = arena._map_private
        patch.setattr(arena, "_map_private", self._answer)

    def refuse_at(self, refused: set[int]) -> None:
        """Refuse some of the next pieces that are asked for."""
        self._refused, self._num_asked = refused, 0

    def _answer(self, num_bytes: int) -> mmap.mmap:
        self._num_asked += 1
        if self._num_asked - 1 in self._refused:
            raise OSError("no memory")
        return self._map(num_bytes)


@given(
    first=SLOTS,
    changes=st.lists(
        st.tuples(
            SLOTS,
            st.sampled_from(LAYERS),
            st.sets(st.integers(0, NUM_EXPERTS - 1), min_size=1),
            st.lists(st.integers(0, NUM_EXPERTS - 1), unique=True),
        ),
        max_size=12,
    ),
    layout_of=st.sampled_from([by_layer, within_a_layer]),
    policy=st.sampled_from([DEFAULT_POLICY, "lru"]),
)
@settings(max_examples=60, deadline=None)
def test_any_budgets_and_steps_take_exact_bytes_and_slots_hold_the_right_experts(
    first: list[int],
    changes: list[tuple[list[int], int, set[int], list[int]]],
    layout_of: LayoutOf,
    policy: str,
) -> None:
    bench = Bench(first, layout_of, policy)
    cache = bench.cache
    cache._ram.hints.trust = Trust(0)
    cache.set_hints(HintMode.ALWAYS)
    cache.fill_behind()
    for slots, layer, wanted, guesses in changes:
        cache.begin_step()
        bench.use(layer, sorted(wanted))
        if cache.takes_guesses:
            cache.guess(LAYERS[LAYERS.index(layer) - 1], guesses)
        cache.resize(slots, bytes_of(slots, layout_of))
        bench.check(slots)
        bench.use(layer, sorted(wanted))
        for each in LAYERS:
            cache._ram.hints.withdraw()
            num_spare, num_free = cache._ram.residents.spare(each)
            assert num_spare == num_free or cache._ram.residents.holds_all
        bench.check(slots)
    cache.close()
    assert bench.ledger.held_bytes == 0


def test_reads_are_given_slots_of_the_size_of_their_layer() -> None:
    bench = Bench((3, 3, 3))
    for layer in LAYERS:
        bench.use(layer, range(NUM_EXPERTS))
    bench.check((3, 3, 3))
    assert bench.store.targets == {(1, SMALL), (4, LARGE), (6, SMALL)}
    bench.cache.close()


def test_only_layers_of_one_size_exchange_slots() -> None:
    bench = Bench((4, 4, 4))
    for _ in range(8):
        bench.use(1, [0])
        bench.use(4, [0, 1, 2, 3])
        bench.use(6, [0, 1, 2, 3])
    for _ in range(40):
        bench.use(1, range(NUM_EXPERTS))
        bench.use(4, [7])
        bench.use(6, [0])
    bench.check((4, 4, 4))
    slots = bench.cache.slots_per_layer
    assert slots[0] > 4 > slots[2]
    assert slots[1] == 4
    bench.cache.close()


def test_a_layer_whose_experts_all_stay_needs_no_other_slots_and_others_still_miss() -> None:
    bench = Bench((NUM_EXPERTS, 2, NUM_EXPERTS))
    bench.cache.fill(NUM_EXPERTS, lambda done, total: None)
    for layer in LAYERS:
        bench.use(layer, range(NUM_EXPERTS))
    bench.check((NUM_EXPERTS, 2, NUM_EXPERTS))
    bench.cache.close()


@pytest.mark.parametrize("layout_of", [by_layer, within_a_layer])
def test_slots_that_have_no_room_leave_all_sizes_as_they_were(layout_of: LayoutOf) -> None:
    bench = Bench((2, 2, 2), layout_of)
    bench.use(1, [0, 1])
    more = (4, 4, 4)
    with pytest.raises(LarderError) as refused:
        # The small ones have room, the last of the large ones has not.
        bench.cache.resize(more, bytes_of(more, layout_of) - 1)
    assert refused.value.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    bench.check((2, 2, 2))
    bench.use(4, range(NUM_EXPERTS))
    bench.cache.close()


WHOLE = (NUM_EXPERTS,) * 3


@pytest.mark.parametrize("layout_of", [by_layer, within_a_layer])
@pytest.mark.parametrize(("first", "then"), [((2, 3, 4), WHOLE), (WHOLE, (2, 3, 4))])
def test_memory_that_runs_out_while_slots_come_leaves_all_sizes_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
    layout_of: LayoutOf,
    first: tuple[int, ...],
    then: tuple[int, ...],
) -> None:
    bench = Bench(first, layout_of)
    shortage, codes = Shortage(monkeypatch), set[ErrorCode]()
    num_refused, is_there = 0, False
    while not is_there:
        shortage.refuse_at({num_refused})
        try:
            bench.cache.resize(then, bytes_of(then, layout_of))
            is_there = True
        except LarderError as error:
            codes.add(error.code)
            num_refused += 1
            bench.check(first)
    bench.check(then)
    for layer in LAYERS:
        bench.use(layer, range(NUM_EXPERTS))
    # Of slots that have the size of their layer before and after, fewer take no new memory.
    is_growth = then is WHOLE or layout_of is within_a_layer
    assert codes == ({ErrorCode.OUT_OF_MEMORY} if is_growth else set())
    bench.cache.close()


@pytest.mark.parametrize("layout_of", [by_layer, within_a_layer])
@pytest.mark.parametrize("then", [WHOLE, (2, 3, 4)])
def test_slots_come_once_there_is_memory_again_whatever_was_there(
    monkeypatch: pytest.MonkeyPatch, layout_of: LayoutOf, then: tuple[int, ...]
) -> None:
    for num_given in range(0, 24, 5):
        bench = Bench(WHOLE, layout_of)
        with monkeypatch.context() as patch:
            Shortage(patch).refuse_at({0, *range(num_given + 1, 99)})
            fewer = (2, 3, 4)
            with contextlib.suppress(LarderError):
                # What was there before does not come back either.
                bench.cache.resize(fewer, bytes_of(fewer, layout_of))
        bench.cache.resize(then, bytes_of(then, layout_of))
        bench.check(then)
        for layer in LAYERS:
            bench.use(layer, range(NUM_EXPERTS))
        bench.cache.close()


def test_all_experts_of_layers_of_several_sizes_lie_in_slots_that_stay() -> None:
    """Where experts of a layer are alike, the last budget is no change of sizes: nobody leaves."""
    bench = Bench((7, 7, 7))
    bench.cache.fill(NUM_EXPERTS, lambda done, total: None)
    whole = (NUM_EXPERTS,) * 3
    bench.cache.resize(whole, bytes_of(whole, by_layer))
    assert bench.cache.num_resident == 21
    assert bench.cache.wait_filled(30)
    bench.cache.begin_step()
    bench.check(whole)
    assert bench.cache.num_resident == 24
    bench.cache.close()


def test_guesses_take_half_of_the_slots_of_their_size_whatever_those_of_another_hold() -> None:
    bench = Bench((2, 2, 2))
    hints = bench.cache._ram.hints
    hints.trust = Trust(0)
    bench.store.gate.clear()
    bench.cache.guess(1, [4, 5])
    assert [*hints._read] == [4]
    assert bench.store.begun.acquire(timeout=30)
    # Of no use any more, and its read has not ended.
    bench.cache.guess(6, [4, 5])
    assert not hints._read
    bench.cache.guess(4, [6, 7])
    assert [*hints._read] == [6]
    bench.store.gate.set()
    hints.withdraw()
    bench.check((2, 2, 2))
    bench.cache.close()
