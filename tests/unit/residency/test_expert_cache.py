import contextlib
import dataclasses
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import CancelledError, LarderError
from runtime.memory.ledger import Ledger
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, PolicyKind
from runtime.protocol.errors import ErrorCode
from runtime.residency.books import Books
from runtime.residency.experts import ExpertCache
from runtime.residency.shape import CacheShape
from runtime.spec.footprint import policy_bytes
from runtime.spec.tensors import PAGE_BYTES, ExpertId
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore, content

NUM_EXPERTS = 8
MOE_LAYERS = (1, 4)
NUM_STAGING = 3
RECORD_BYTES = TINY_LAYOUT.record_bytes
REQUESTS = st.lists(
    st.tuples(st.sampled_from(MOE_LAYERS), st.sets(st.integers(0, NUM_EXPERTS - 1), min_size=1)),
    max_size=25,
)


@dataclasses.dataclass
class Bench:
    """A cache with everything it was made from."""

    cache: ExpertCache
    store: DictionaryStore
    ledger: Ledger
    counters: Counters
    tally: ExpertTally


def make_bench(
    slots_per_layer: tuple[int, ...],
    failing: frozenset[ExpertId] = frozenset(),
    kind: PolicyKind = POLICIES[DEFAULT_POLICY],
) -> Bench:
    store = DictionaryStore(failing=failing)
    shape = CacheShape(MOE_LAYERS, slots_per_layer, NUM_EXPERTS, num_staging=NUM_STAGING)
    num_slots = shape.with_staging(sum(slots_per_layer), len(MOE_LAYERS))
    ledger = Ledger(num_slots * RECORD_BYTES + policy_bytes(len(MOE_LAYERS), NUM_EXPERTS))
    counters = Counters()
    tally = ExpertTally(len(MOE_LAYERS), NUM_EXPERTS, 32)
    cache = ExpertCache(store, shape, ledger, Books(counters, tally), kind)
    return Bench(cache, store, ledger, counters, tally)


def use(cache: ExpertCache, layer: int, experts: Sequence[int]) -> list[int]:
    """Compute a step; return the experts in the order in which they were handed out."""
    used: list[int] = []
    with contextlib.closing(cache.runs(layer, experts)) as runs:
        for run in runs:
            # Slots of a run are checked after all of them were handed out.
            held = {expert: bytes(slot.data[:RECORD_BYTES]) for expert, slot in run}
            for expert, data in held.items():
                assert data == content(ExpertId(layer, expert)) * RECORD_BYTES
            assert len({slot.address for _, slot in run}) == len(run)
            used += held
    return used


def ignore_progress(done_bytes: int, total_bytes: int) -> None:
    assert 0 <= done_bytes <= total_bytes


@given(
    slots=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    requests=REQUESTS,
    is_filled=st.booleans(),
)
def test_expert_cache_any_requests_slots_hold_the_right_experts(
    slots: tuple[int, int], requests: list[tuple[int, set[int]]], is_filled: bool
) -> None:
    bench = make_bench(slots)
    cache = bench.cache
    if is_filled:
        cache.fill(NUM_EXPERTS, ignore_progress)
        assert cache.num_resident == sum(slots)
    filled_bytes = bench.store.num_bytes_read
    before = bench.counters.copy()
    num_asked = 0
    for layer, wanted in requests:
        experts = sorted(wanted)
        num_asked += len(experts)
        assert use(cache, layer, experts) == experts
        cache.check()
        assert sum(cache.slots_per_layer) == sum(slots)
    added = bench.counters.since(before)
    assert added.expert_hits + added.expert_misses == num_asked
    in_vram, in_ram, on_drive = (sum(bench.tally.layer_hits[tier::3]) for tier in range(3))
    assert (in_vram, in_ram, on_drive) == (0, added.expert_hits, added.expert_misses)
    assert added.expert_hit_bytes == added.expert_hits * RECORD_BYTES
    assert added.expert_miss_bytes == added.expert_misses * RECORD_BYTES
    assert bench.store.num_bytes_read == filled_bytes + added.expert_miss_bytes
    cache.close()
    cache.close()
    assert bench.ledger.held_bytes == 0


def test_expert_cache_all_resident_reads_nothing_more() -> None:
    bench = make_bench((NUM_EXPERTS, NUM_EXPERTS))
    bench.cache.fill(NUM_EXPERTS, ignore_progress)
    num_read = len(bench.store.read_experts)

    for layer in MOE_LAYERS:
        use(bench.cache, layer, range(NUM_EXPERTS))

    assert num_read == len(bench.store.read_experts) == 2 * NUM_EXPERTS
    assert bench.counters.expert_misses == 0
    assert bench.counters.drive_wait_s == 0
    bench.cache.close()


def test_expert_cache_experts_that_stay_outside_are_computed_and_take_no_slot() -> None:
    bench = make_bench((2, 1))
    for _ in range(6):
        use(bench.cache, 1, [0, 5])
        use(bench.cache, 4, [1])

    use(bench.cache, 1, [0, 3, 5])

    assert bench.cache.find(ExpertId(1, 3)) is None
    assert bench.cache.find(ExpertId(1, 5)) is not None
    assert bench.cache.num_resident == 3
    bench.cache.check()
    bench.cache.close()


def test_expert_cache_layer_that_misses_more_takes_slots_of_another() -> None:
    bench = make_bench((3, 3))
    for _ in range(8):
        use(bench.cache, 1, [0, 1, 2])
        use(bench.cache, 4, [3, 4, 5])
    for _ in range(40):
        use(bench.cache, 1, [7])
        use(bench.cache, 4, [1, 3, 4, 5, 6])
        bench.cache.check()

    assert bench.cache.slots_per_layer == (1, 5)
    before = bench.counters.copy()
    use(bench.cache, 1, [7])
    use(bench.cache, 4, [1, 3, 4, 5, 6])
    assert bench.counters.since(before).expert_misses == 0
    bench.cache.close()


@pytest.mark.parametrize("num_slots", [3, 9, 16])
def test_expert_cache_resized_keeps_the_policy_and_gives_memory_back(num_slots: int) -> None:
    bench = make_bench((6, 6))
    cache = bench.cache
    for _ in range(8):
        use(cache, 1, [0, 1])
        use(cache, 4, [5])
    shape = CacheShape(MOE_LAYERS, (8, 8), NUM_EXPERTS, num_staging=NUM_STAGING)
    num_places = shape.with_staging(num_slots, len(MOE_LAYERS))
    limit = num_places * RECORD_BYTES + policy_bytes(2, NUM_EXPERTS)

    cache.resize((num_slots, 0), limit)

    assert sum(cache.slots_per_layer) == num_slots
    assert bench.ledger.held_bytes == limit == bench.ledger.limit_bytes
    cache.check()
    before = bench.counters.copy()
    use(cache, 1, [0, 1])
    use(cache, 4, [5])
    assert bench.counters.since(before).expert_misses == 0
    assert cache.wait_filled(30)
    cache.begin_step()
    cache.check()
    cache.close()
    assert bench.ledger.held_bytes == 0


@given(
    slots=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    requests=REQUESTS,
    totals=st.lists(st.integers(1, 2 * NUM_EXPERTS), max_size=25),
    name=st.sampled_from([DEFAULT_POLICY, "lru"]),
)
def test_expert_cache_resized_while_filling_slots_hold_the_right_experts(
    slots: tuple[int, int], requests: list[tuple[int, set[int]]], totals: list[int], name: str
) -> None:
    bench = make_bench(slots, kind=POLICIES[name])
    cache = bench.cache
    cache.fill_behind()
    for (layer, wanted), total in zip(requests, totals, strict=False):
        cache.begin_step()
        assert use(cache, layer, sorted(wanted)) == sorted(wanted)
        cache.resize((total, 0), 64 * PAGE_BYTES)
        cache.check()
        assert sum(cache.slots_per_layer) == total
    cache.close()
    assert bench.ledger.held_bytes == 0


def test_expert_cache_failed_read_names_it_and_leaves_the_cache_sound() -> None:
    bench = make_bench((2, 2), failing=frozenset({ExpertId(1, 3)}))
    use(bench.cache, 1, [0, 1])

    with pytest.raises(LarderError) as failed:
        use(bench.cache, 1, [2, 3])

    assert failed.value.code is ErrorCode.DRIVE_READ_FAILED
    bench.cache.check()
    assert bench.cache.find(ExpertId(1, 3)) is None
    assert bench.cache.find(ExpertId(1, 2)) is not None
    assert use(bench.cache, 1, [0, 2]) == [0, 2]
    bench.cache.close()


def test_expert_cache_fill_stopped_by_progress_leaves_the_cache_sound() -> None:
    bench = make_bench((NUM_EXPERTS, NUM_EXPERTS))

    def stop_half_way(done_bytes: int, total_bytes: int) -> None:
        if done_bytes * 2 >= total_bytes:
            raise CancelledError

    with pytest.raises(CancelledError):
        bench.cache.fill(NUM_EXPERTS, stop_half_way)

    bench.cache.check()
    assert bench.cache.num_resident == NUM_EXPERTS
    bench.cache.close()


@pytest.mark.parametrize("slots", [(0, 1), (9, 1), (1,)])
def test_cache_shape_impossible_slots_refused(slots: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="slots"):
        CacheShape(MOE_LAYERS, slots, NUM_EXPERTS)


def test_expert_cache_read_with_a_bug_loses_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench((2, 2))

    def break_down(expert: ExpertId, target: memoryview) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(bench.store, "read_expert", break_down)
        with pytest.raises(ZeroDivisionError):
            use(bench.cache, 1, [0, 1])
    bench.cache.check()
    assert use(bench.cache, 1, [2, 3]) == [2, 3]
    bench.cache.close()


class CountingStore(DictionaryStore):
    """A store that releases one for each read that has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Semaphore(0)

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        super().read_expert(expert, target)
        self.ended.release()


def test_expert_cache_one_half_of_staging_is_read_while_the_other_is_computed() -> None:
    num_staging, num_experts = 4, 16
    store = CountingStore()
    shape = CacheShape((1,), (1,), num_experts, num_staging=num_staging)
    ledger = Ledger((1 + num_staging) * RECORD_BYTES + policy_bytes(1, num_experts))
    books = Books(Counters(), ExpertTally(1, num_experts, 32))
    cache = ExpertCache(store, shape, ledger, books)
    cache.fill(1, ignore_progress)
    assert store.ended.acquire(timeout=30)
    missing = [expert for expert in range(num_experts) if cache.find(ExpertId(1, expert)) is None]
    num_read = num_computed = 0
    with contextlib.closing(cache.runs(1, range(num_experts))) as runs:
        for run in runs:
            # The run is being computed: meanwhile the drive goes on by itself.
            num_missed = sum(expert in missing for expert, _ in run)
            num_computed += num_missed
            left = len(missing) - num_computed
            assert num_missed <= num_staging // 2 or not left
            while num_read < min(len(missing), num_computed + num_staging // 2):
                assert store.ended.acquire(timeout=30), "nothing is read while a run is computed"
                num_read += 1
    assert num_computed == len(missing)
    assert len(store.read_experts) == len(set(store.read_experts))
    cache.close()
