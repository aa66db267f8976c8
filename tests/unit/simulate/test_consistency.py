"""How alike the experts of tokens in a row are, on routings that can be worked out by hand."""

import numpy as np
import pytest

from runtime.simulate.consistency import (
    count_routing,
    count_trace,
    segment_hits,
    segment_uses,
)
from runtime.simulate.reuse import MAX_KEPT_TOKENS, ReuseMeter
from runtime.spec.past import RoutingCounts
from tests.support.traces import sticky_trace


def routed(*tokens: list[int]) -> np.ndarray:
    """A routing of one layer."""
    return np.array(tokens, np.int64)[:, None, :]


def test_uses_are_counted_in_every_segment() -> None:
    # Segments of two: {0, 1}, {1, 1}, {1, 2} of four experts.
    assert segment_uses(routed([0], [1], [1], [2]), 4, 2) == [
        2 + 3 + 2,  # not chosen
        2 + 0 + 2,  # by one of both
        0 + 1 + 0,  # by both
    ]
    two_layers = np.array([[[0, 1], [2, 3]], [[1, 0], [0, 1]]], np.int64)
    assert segment_uses(two_layers, 4, 2) == [2, 4, 2]


@pytest.mark.parametrize(
    ("tokens", "slots", "segment_tokens", "expected"),
    [
        # One slot: 0 enters the empty slot, 1 takes its place, 0 again, 0 stays.
        (([0], [1], [0], [0]), 1, 4, 2),
        # Two slots hold both; the third expert finds none empty and is a miss.
        (([0], [1], [0], [1]), 2, 4, 4),
        # When 2 enters, 1 is needed next and 0 only later: with a view of two tokens 0 leaves.
        (([0], [1], [2], [1], [0]), 2, 2, 3),
        # 0 is needed twice more and 1 once: with the whole in view 1 leaves for 2.
        (([0], [1], [2], [0], [0], [1]), 2, 6, 4),
        # Who is needed by none of the next tokens and was needed longest ago leaves: 0.
        (([0], [1], [2], [3], [3], [1]), 2, 1, 3),
        # Two of a token at once: 0 and 1 into empty slots, then 2 for one of them.
        (([0, 1], [0, 2], [0, 2]), 2, 3, 5),
    ],
)
def test_hits_of_caches_that_see_a_segment(
    tokens: tuple[list[int], ...], slots: int, segment_tokens: int, expected: int
) -> None:
    assert segment_hits(routed(*tokens), 4, [slots], segment_tokens) == [expected]


def test_caches_of_several_sizes_and_layers_count_by_themselves() -> None:
    trace = sticky_trace(num_tokens=120, num_layers=3, num_experts=16, top_k=2)
    ids = trace.ids.astype(np.int64)
    together = segment_hits(ids, 16, [2, 4, 6], 16)
    assert together == sorted(together)
    for number, slots in enumerate((2, 4, 6)):
        alone = (segment_hits(ids[:, [layer]], 16, [slots], 16)[0] for layer in range(3))
        assert together[number] == sum(alone)
    assert segment_hits(ids, 16, [16], 16) == [ids.size]


def test_sequences_of_a_trace_are_counted_apart() -> None:
    trace = sticky_trace(num_tokens=90, num_layers=2, num_experts=16, top_k=2)
    first, second = trace.ids[:50].astype(np.int64), trace.ids[50:].astype(np.int64)
    parts = [count_routing(ids, 16) for ids in (first, second)]
    whole = count_trace(
        type(trace)(trace.name, trace.origin, 16, trace.layers, (50, 40), trace.ids)
    )
    assert whole is not None
    assert parts[0] is not None
    assert parts[1] is not None
    assert whole == parts[0].plus(parts[1], 50)
    assert whole.num_tokens == 90
    assert whole.num_needs == trace.ids.size
    assert sum(whole.uses) == (35 + 25) * 2 * 16
    assert count_routing(first[:15], 16) is None
    short = type(trace)(trace.name, trace.origin, 16, trace.layers, (9,), trace.ids[:9])
    assert count_trace(short) is None


def test_counts_fade() -> None:
    old = RoutingCounts((100, *[0] * 15, 60), (20, 40, 60), 80, 1000)
    new = RoutingCounts((1, *[0] * 15, 2), (1, 2, 3), 4, 5)
    assert old.plus(new, 500) == RoutingCounts((51, *[0] * 15, 32), (11, 22, 33), 44, 505)
    assert old.plus(new, 1000).num_tokens == 1005


def test_meter_judges_the_first_tokens_of_an_answer_in_some_layers() -> None:
    trace = sticky_trace(num_tokens=MAX_KEPT_TOKENS + 40, num_layers=24, num_experts=128, top_k=4)
    meter = ReuseMeter(trace.num_experts, trace.layers, trace.top_k)
    assert meter.take_routing() is None
    for token in trace.ids:
        for index, layer in enumerate(trace.layers):
            meter.note(layer, token[index].tolist())
    found = meter.take_routing()
    # 24 layers of 128 experts are three times too many: every third is taken.
    judged = trace.ids[:MAX_KEPT_TOKENS, 1::3].astype(np.int64)
    assert found == count_routing(judged, 128)
    assert found is not None
    assert found.num_tokens == MAX_KEPT_TOKENS
    assert meter.take_routing() is None
