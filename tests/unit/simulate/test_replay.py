import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.catalogue import POLICIES
from runtime.simulate import gap
from runtime.simulate.curves import lru_hits
from runtime.simulate.gap import judge, slots_of_share
from runtime.simulate.records import LayerBytes
from runtime.simulate.replay import Entry, replay
from tests.support.traces import sticky_trace, trace_of

TRACE = sticky_trace(num_tokens=150, num_layers=4)
NAMES = sorted(POLICIES)


@pytest.mark.parametrize("entry", Entry)
@pytest.mark.parametrize("name", NAMES)
def test_replay_any_policy_twice_is_the_same_and_not_above_the_bound(
    name: str, entry: Entry
) -> None:
    slots = [4] * TRACE.num_layers

    first = replay(TRACE, POLICIES[name], slots, entry)
    second = replay(TRACE, POLICIES[name], slots, entry)

    has_even_slots = not POLICIES[name].is_shared and not POLICIES[name].is_split_by_gain
    bound = "clairvoyant" if has_even_slots else "clairvoyant-shared"
    assert first == second
    assert first.misses >= replay(TRACE, POLICIES[bound], slots).misses
    assert first.hits + first.misses == TRACE.ids.size


def hits_counted_plainly(rows: list[list[int]], num_slots: int) -> int:
    """Return what LRU hits in one layer, counted plainly."""
    order: list[int] = []
    hits = 0
    for row in rows:
        here = [expert for expert in row if expert in order]
        hits += len(here)
        for expert in [*here, *(expert for expert in row if expert not in here)]:
            if expert in order:
                order.remove(expert)
            order.append(expert)
        order = order[-num_slots:]
    return hits


@given(
    rows=st.lists(
        st.lists(st.integers(0, 7), min_size=3, max_size=3, unique=True), min_size=1, max_size=30
    ),
    num_slots=st.integers(3, 8),
)
def test_replay_lru_any_needs_hits_as_counted_plainly(
    rows: list[list[int]], num_slots: int
) -> None:
    trace = trace_of([[row] for row in rows], 8)

    for entry in Entry:
        assert replay(trace, POLICIES["lru"], [num_slots], entry).hits == hits_counted_plainly(
            rows, num_slots
        )


def test_replay_layers_by_themselves_add_up() -> None:
    whole = replay(TRACE, POLICIES["lru"], [2, 4, 6, 8])

    for layer, num_slots in enumerate((2, 4, 6, 8)):
        alone = replay(TRACE.only_layers([layer]), POLICIES["lru"], [num_slots])
        assert alone.layers == (whole.layers[layer],)


def test_replay_mixed_record_sizes_counts_bytes_of_each_layer() -> None:
    sizes = (100, 1, 1, 100)
    result = replay(TRACE, POLICIES["lru"], [4] * 4, record_bytes=sizes)

    expected = sum(size * layer.misses for size, layer in zip(sizes, result.layers, strict=True))
    assert result.miss_bytes == expected
    assert result.hit_bytes + result.miss_bytes == TRACE.num_tokens * TRACE.top_k * sum(sizes)


def test_replay_mixed_record_sizes_exchange_slots_within_a_size_only() -> None:
    sizes = (100, 1, 1, 100)
    kind = POLICIES["expected-shared"]

    mixed = replay(TRACE, kind, [4] * 4, record_bytes=sizes)

    outer = replay(TRACE.only_layers([0, 3]), kind, [4] * 2)
    inner = replay(TRACE.only_layers([1, 2]), kind, [4] * 2)
    assert (mixed.layers[0], mixed.layers[3]) == outer.layers
    assert mixed.layers[1:3] == inner.layers
    for pair in (outer, inner):
        assert sum(layer.num_resident for layer in pair.layers) <= 8


@given(
    rows=st.lists(
        st.lists(st.integers(0, 7), min_size=3, max_size=3, unique=True), min_size=1, max_size=30
    ),
    sizes=st.lists(st.integers(1, 10**12), min_size=8, max_size=8),
    num_slots=st.integers(3, 8),
)
def test_replay_sizes_of_each_expert_count_their_own_bytes(
    rows: list[list[int]], sizes: list[int], num_slots: int
) -> None:
    trace = trace_of([[row] for row in rows], 8)

    result = replay(trace, POLICIES["lru"], [num_slots], record_bytes=[sizes])

    order: list[int] = []
    missed = 0
    for row in rows:
        here = [expert for expert in row if expert in order]
        others = [expert for expert in row if expert not in here]
        missed += sum(sizes[expert] for expert in others)
        order = [expert for expert in order if expert not in row] + here + others
        order = order[-num_slots:]
    assert result.miss_bytes == missed
    assert result.hit_bytes + missed == sum(sizes[expert] for row in rows for expert in row)


def test_replay_layers_of_slots_of_one_size_exchange_them_whatever_their_smaller_records() -> None:
    kind = POLICIES["expected-shared"]
    ones = [1] * TRACE.num_experts

    mixed = replay(
        TRACE, kind, [4] * 4, record_bytes=[[100, *ones[1:]]] * 2 + [[*ones[1:], 100]] * 2
    )

    assert mixed.layers == replay(TRACE, kind, [4] * 4).layers


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ([1, 1, 1], "sizes of 3 layers, and 4 are replayed"),
        ([1, 1, 1, [1, 2]], "2 sizes in a layer of 16 experts"),
        ([1, 1, 1, 0], "0 to 0 bytes of an expert"),
        ([1, 1, 1, [*[3] * 15, -1]], "-1 to 3 bytes of an expert"),
    ],
)
def test_replay_sizes_that_do_not_fit_are_refused(sizes: list[LayerBytes], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replay(TRACE, POLICIES["lru"], [4] * 4, record_bytes=sizes)


def test_replay_shared_slots_beat_even_ones_where_layers_differ() -> None:
    still = [[[0, 1], [token % 8, (token + 1) % 8]] for token in range(200)]
    trace = trace_of(still, 8)

    even = replay(trace, POLICIES["decayed"], [5, 5])
    shared = replay(trace, POLICIES["decayed-shared"], [5, 5])

    assert shared.hits > even.hits
    assert shared.layers[1].num_resident == 8


@given(needs=st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_lru_hits_any_needs_are_those_of_a_replay_with_each_number_of_slots(
    needs: list[int],
) -> None:
    trace = trace_of([[[expert]] for expert in needs], 6)

    assert lru_hits(trace) == [
        [replay(trace, POLICIES["lru"], [num_slots]).hits for num_slots in range(7)]
    ]


def test_replay_slots_split_by_gain_go_where_lru_needs_them() -> None:
    still = [[[0, 1], [token % 8, (token + 1) % 8]] for token in range(200)]
    trace = trace_of(still, 8)
    turned = trace_of([row[::-1] for row in still], 8)

    even, split = (replay(trace, POLICIES[name], [5, 5]) for name in ("lru", "lru-split"))
    strange = replay(trace, POLICIES["lru-split"], [5, 5], profile=turned)
    required = replay(trace, POLICIES["lru-split"], [5, 5], Entry.REQUIRED)

    assert split.slots == required.slots == (2, 8)
    assert strange.slots == (8, 2)
    assert split.hits > even.hits >= strange.hits


def test_replay_trace_with_scores_keeps_what_the_router_wanted_more() -> None:
    trace = trace_of([[[0, 1]]] * 10 + [[[2, 1]]] * 10, 3)
    scores = np.where(trace.ids == 1, 200, 20).astype(np.uint8)
    kind = POLICIES["score-average"]

    plain, weighed = (
        replay(dataclasses.replace(trace, scores=each), kind, [1]) for each in (None, scores)
    )

    # Told apart, the one that is needed all the time is kept from the first token on.
    assert weighed.hits == 19
    assert plain.hits < 19


def test_replay_policy_that_cannot_rank_is_refused_shared_slots() -> None:
    kind = dataclasses.replace(POLICIES["lru"], is_shared=True)

    with pytest.raises(ValueError, match="only ranking policies"):
        replay(TRACE, kind, [4] * 4)


def test_replay_wrong_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="slots of 1 layers, and 4 are"):
        replay(TRACE, POLICIES["lru"], [4])
    with pytest.raises(ValueError, match="1 slots, and a token needs 2"):
        replay(TRACE, POLICIES["lru"], [1] * 4, Entry.REQUIRED)


def test_replay_profile_of_other_work_decides_what_is_static() -> None:
    other = sticky_trace(num_tokens=150, num_layers=4, seed=9)

    own = replay(TRACE, POLICIES["static"], [4] * 4)
    strange = replay(TRACE, POLICIES["static"], [4] * 4, profile=other)

    assert own.hits > strange.hits


def test_judge_policy_that_beats_the_bound_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gap, "BOUND", "slru-second")

    with pytest.raises(AssertionError, match="clairvoyant"):
        judge(TRACE, [POLICIES["clairvoyant"]], 16)


def test_judge_base_and_bound_close_nothing_and_all() -> None:
    kinds = [POLICIES[name] for name in ("lru", "clairvoyant", "expected-shared")]

    base, bound, default = judge(TRACE, kinds, slots_of_share(TRACE, 0.25))

    assert base.gap_closed_ratio == 0
    assert base.points_above_base == 0
    assert bound.gap_closed_ratio == 1
    assert default.replay.slots == (4,) * 4
    (required,) = judge(TRACE, kinds[1:2], slots_of_share(TRACE, 0.25), Entry.REQUIRED)
    assert required.gap_closed_ratio <= 1
    (everything,) = judge(TRACE, kinds[:1], slots_of_share(TRACE, 1.0))
    assert everything.gap_closed_ratio == 0
