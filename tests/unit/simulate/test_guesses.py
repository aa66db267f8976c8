import dataclasses

import numpy as np
import pytest

from runtime.simulate.guesses import with_guesses
from runtime.simulate.trace import Trace
from tests.support.traces import sticky_trace, trace_of

# The second layer follows the first, the third is at odds with it; each has favourites.
FIRST = np.random.default_rng(3).integers(0, 4, 120)
FOLLOWING = trace_of([[[e, 4], [e + 1, 7], [6 - e, 7]] for e in FIRST.tolist()], 8)


def recall(trace: Trace, layer: int, since: int) -> float:
    assert trace.hints is not None
    pairs = zip(trace.hints[since:, layer], trace.ids[since:, layer], strict=True)
    return float(np.mean([np.isin(needed, guessed).mean() for guessed, needed in pairs]))


def test_guesses_learn_what_follows_in_the_next_layer() -> None:
    found = with_guesses(FOLLOWING)

    assert found.hints is not None
    assert found.hints.shape == found.ids.shape
    assert [recall(found, layer, 40) for layer in (1, 2)] == [1.0, 1.0]
    # Nobody knows what the first layer will need: one of its two is always the same.
    assert 0.5 <= recall(found, 0, 40) < 0.9


def test_guesses_look_at_no_later_token() -> None:
    trace = sticky_trace(num_tokens=80)

    whole, part = with_guesses(trace), with_guesses(trace.part(50))

    assert whole.hints is not None
    assert part.hints is not None
    assert (whole.hints[:50] == part.hints).all()


def test_guesses_trust_the_expert_of_the_higher_score() -> None:
    # Expert 0 is followed by 2, expert 1 by 3; then both are chosen, the second with a high score.
    rows = [[[0, 4], [2, 5]], [[1, 4], [3, 5]]] * 6 + [[[0, 1], [2, 3]]]
    trace = trace_of(rows, 6)
    scores = np.full(trace.ids.shape, 128, np.uint8)
    scores[-1, 0] = [20, 235]

    found = with_guesses(dataclasses.replace(trace, scores=scores))
    turned = scores.copy()
    turned[-1, 0] = [235, 20]
    other = with_guesses(dataclasses.replace(trace, scores=turned))

    assert found.hints is not None
    assert other.hints is not None
    assert 3 in found.hints[-1, 1]
    assert 2 not in found.hints[-1, 1]
    assert 2 in other.hints[-1, 1]


@pytest.mark.parametrize("num_layers", [1, 2])
def test_guesses_of_few_layers_and_one_token_name_no_expert_twice(num_layers: int) -> None:
    found = with_guesses(sticky_trace(num_tokens=2, num_layers=num_layers))

    assert found.hints is not None
    for row in found.hints.reshape(-1, found.top_k).tolist():
        assert len(set(row)) == found.top_k
