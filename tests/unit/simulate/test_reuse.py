"""Ranks of recency: what least recently used slots would have found, counted token by token."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.catalogue import POLICIES
from runtime.simulate.replay import Entry, replay
from runtime.simulate.reuse import ReuseMeter
from runtime.simulate.trace import Trace
from tests.support.traces import sticky_trace


def counted(trace: Trace) -> tuple[int, ...]:
    meter = ReuseMeter(trace.num_experts, trace.layers, trace.top_k)
    for token in range(trace.num_tokens):
        for index, layer in enumerate(trace.layers):
            meter.note(layer, sorted(trace.ids[token, index].tolist()))
    counts = meter.take()
    assert counts is not None
    # The first token has nothing before it.
    assert counts.num_tokens == trace.num_tokens - 1
    assert sum(counts.found) == counts.num_tokens * trace.num_layers * trace.top_k
    return counts.found


def test_meter_finds_what_replayed_lru_slots_find() -> None:
    trace = sticky_trace(num_tokens=3000, num_layers=2, num_experts=32, top_k=4)
    found = np.cumsum(counted(trace)) / sum(counted(trace))
    for num_slots in (8, 12, 20, 28):
        slots = [num_slots] * trace.num_layers
        real = replay(trace, POLICIES["lru"], slots, Entry.REQUIRED).hit_ratio
        assert abs(float(found[num_slots - 1]) - real) < 0.015


@given(st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=2, unique=True), min_size=2))
def test_meter_counts_every_need_once(rows: list[list[int]]) -> None:
    meter = ReuseMeter(6, (3,), 2)
    for row in rows:
        meter.note(3, sorted(row))
    counts = meter.take()
    assert counts is not None
    assert sum(counts.found) == 2 * (len(rows) - 1)
    assert meter.take() is None


def test_meter_counts_no_prompt_and_puts_its_experts_in_the_middle() -> None:
    meter = ReuseMeter(8, (0,), 2)
    meter.note(0, [0, 1, 2, 3, 4])
    meter.note(0, [1, 6])
    counts = meter.take()
    assert counts is not None
    assert counts.num_tokens == 1
    # 1 is one of five of the prompt; 6, 7 and 5 come after them.
    assert counts.found == (0, 0, 1, 0, 0, 0, 1, 0)


def test_meter_forgets_a_step_that_was_broken_off() -> None:
    meter = ReuseMeter(4, (0, 1), 1)
    for layer, expert in ((0, 0), (1, 0), (0, 2), (0, 1), (1, 1), (1, 3), (0, 0), (1, 0)):
        meter.note(layer, [expert])
    counts = meter.take()
    assert counts is not None
    assert counts.num_tokens == 2
