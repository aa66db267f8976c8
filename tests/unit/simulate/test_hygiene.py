import dataclasses

import numpy as np
import pytest

from runtime.simulate.hygiene import complaints, reuse_by_chance, reuse_share
from runtime.simulate.trace import Trace
from tests.support.traces import sticky_trace


def with_ids(trace: Trace, ids: np.ndarray) -> Trace:
    return dataclasses.replace(trace, ids=ids.astype(np.uint16))


def test_hygiene_trace_like_real_routing_is_trusted() -> None:
    assert complaints(sticky_trace()) == []


def test_hygiene_expert_twice_in_a_row_is_named() -> None:
    trace = sticky_trace()
    ids = trace.ids.copy()
    ids[5, 1] = 3

    assert complaints(with_ids(trace, ids)) == ["1 rows name an expert twice"]


def test_hygiene_every_expert_in_turn_is_named() -> None:
    trace = sticky_trace()
    turns = np.arange(trace.ids.size).reshape(-1, 2) % 16

    found = complaints(with_ids(trace, turns.reshape(trace.ids.shape)))

    assert any("as even as chance" in text for text in found)
    assert any("reuse from token to token is chance" in text for text in found)


def test_hygiene_order_of_tokens_lost_is_named() -> None:
    trace = sticky_trace(num_tokens=2000)
    shuffled = np.random.default_rng(3).permutation(trace.ids, axis=0)

    (found,) = complaints(with_ids(trace, shuffled))

    assert found.startswith("reuse from token to token is chance")


def test_hygiene_few_tokens_are_not_judged() -> None:
    assert complaints(sticky_trace(num_tokens=50)) == ["50 tokens are too few to judge"]


def test_reuse_counted_by_hand_is_equal() -> None:
    trace = sticky_trace(num_tokens=80)
    lag = 3

    by_hand = [
        expert in trace.ids[token - lag, layer]
        for layer in range(trace.num_layers)
        for token in range(lag, trace.num_tokens)
        for expert in trace.ids[token, layer]
    ]

    assert reuse_share(trace, lag) == pytest.approx(sum(by_hand) / len(by_hand))
    assert reuse_share(trace, 80) == 0
    assert 0 < reuse_by_chance(trace) < 1
