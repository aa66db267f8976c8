import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import CancelledError, LarderError
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.residency.experts import ExpertCache
from runtime.residency.ram_experts import Books
from runtime.residency.shape import CacheShape
from runtime.residency.slots import CPU
from runtime.spec.tensors import ExpertId
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore, content

NUM_EXPERTS = 8
MOE_LAYERS = (1, 4)
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


def make_bench(
    slots_per_layer: tuple[int, ...], failing: frozenset[ExpertId] = frozenset()
) -> Bench:
    store = DictionaryStore(failing=failing)
    ledger = Ledger(sum(slots_per_layer) * RECORD_BYTES)
    counters = Counters()
    shape = CacheShape(MOE_LAYERS, slots_per_layer, NUM_EXPERTS)
    tally = ExpertTally(len(MOE_LAYERS), NUM_EXPERTS, 32)
    return Bench(ExpertCache(store, shape, ledger, Books(counters, tally)), store, ledger, counters)


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
        experts = sorted(wanted)[: dict(zip(MOE_LAYERS, cache.slots_per_layer, strict=True))[layer]]
        num_asked += len(experts)
        acquired = cache.acquire(layer, experts)
        for expert, slot in zip(experts, acquired, strict=True):
            assert (
                bytes(slot.data[:RECORD_BYTES]) == content(ExpertId(layer, expert)) * RECORD_BYTES
            )
            key = cache.find(ExpertId(layer, expert))
            assert key is not None
            assert key.device == CPU
        cache.check()
        cache.release(layer, experts)
    added = bench.counters.since(before)
    assert added.expert_hits + added.expert_misses == num_asked
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
        bench.cache.acquire(layer, range(NUM_EXPERTS))

    assert num_read == len(bench.store.read_experts) == 2 * NUM_EXPERTS
    assert bench.counters.expert_misses == 0
    assert bench.counters.drive_wait_s == 0
    bench.cache.close()


def test_expert_cache_locked_experts_stay_while_others_come() -> None:
    bench = make_bench((3, 1))
    held = bench.cache.acquire(1, [0, 5])

    for expert in (1, 2, 3):
        bench.cache.acquire(1, [expert])
        bench.cache.release(1, [expert])

    assert bench.cache.find(ExpertId(1, 0)) is not None
    assert bench.cache.find(ExpertId(1, 5)) is not None
    assert held[1].data[0] == content(ExpertId(1, 5))[0]
    bench.cache.check()
    bench.cache.close()


def test_expert_cache_failed_read_names_it_and_leaves_the_cache_sound() -> None:
    bench = make_bench((2, 2), failing=frozenset({ExpertId(1, 3)}))
    bench.cache.acquire(1, [0, 1])
    bench.cache.release(1, [0, 1])

    with pytest.raises(LarderError) as failed:
        bench.cache.acquire(1, [2, 3])

    assert failed.value.code is ErrorCode.DRIVE_READ_FAILED
    bench.cache.check()
    assert bench.cache.find(ExpertId(1, 3)) is None
    assert bench.cache.find(ExpertId(1, 2)) is not None
    assert len(bench.cache.acquire(1, [0, 2])) == 2
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


def test_expert_cache_more_experts_than_slots_is_refused() -> None:
    bench = make_bench((2, 2))

    with pytest.raises(ValueError, match="3 experts for 2 slots"):
        bench.cache.acquire(1, [0, 1, 2])

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
            bench.cache.acquire(1, [0, 1])
    bench.cache.acquire(1, [2, 3])
    bench.cache.check()
    bench.cache.release(1, [2, 3])
    bench.cache.close()
