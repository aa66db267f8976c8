"""Made-up traces: like the one they imitate, no copy of it, and the same for the same seed."""

import dataclasses

import numpy as np
import pytest

from runtime.policy.catalogue import POLICIES
from runtime.simulate.hygiene import complaints, reuse_share, uses
from runtime.simulate.replay import replay
from runtime.simulate.synthetic import Likeness, likeness_of, synthesize
from tests.support.traces import sticky_trace, trace_of

TRACE = sticky_trace(num_tokens=810, num_layers=8, num_experts=32, top_k=4)
PIECE_TOKENS = 32


@pytest.fixture(scope="module")
def likeness() -> Likeness:
    return likeness_of(TRACE)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_synthetic_trace_reuses_and_hits_like_the_one_it_imitates(
    likeness: Likeness, seed: int
) -> None:
    made = synthesize(likeness, 800, seed)

    assert complaints(made) == []
    assert (made.num_experts, made.layers, made.top_k) == (32, TRACE.layers, 4)
    for lag in (1, 2, 4, 8, 16, 32):
        assert reuse_share(made, lag) == pytest.approx(reuse_share(TRACE, lag), abs=0.03)
    for num_slots in (8, 16):
        slots = [num_slots] * 8
        found, wanted = (replay(trace, POLICIES["lru"], slots) for trace in (made, TRACE))
        assert found.hit_ratio == pytest.approx(wanted.hit_ratio, abs=0.03)
    favourites = uses(TRACE).argmax(axis=1)
    for layer, expert in enumerate(favourites):
        assert uses(made)[layer, expert] > 1.5 * uses(made)[layer].mean()


def test_synthetic_trace_is_no_copy_and_of_any_length(likeness: Likeness) -> None:
    made = synthesize(likeness, 3001, seed=1)

    assert made.num_tokens == 3001
    assert made.sequence_tokens == (3001,)
    tokens = [row.tobytes() for row in TRACE.ids]
    places = np.array([tokens.index(row.tobytes()) for row in made.ids])
    turns = np.flatnonzero(np.diff(places) != 1)
    assert len(turns) > 3001 / PIECE_TOKENS / 8, "a walk turns often"
    # Every piece is walked about as often as any other.
    walked = np.bincount(places[::PIECE_TOKENS] // PIECE_TOKENS, minlength=25)
    assert walked.min() >= 1
    assert walked.max() <= 8


def test_synthetic_turns_lead_where_the_same_experts_were_in_use() -> None:
    still = [[[0, 1]] * 2, [[2, 3]] * 2]
    trace = trace_of([still[token // 160 % 2] for token in range(1600)], 4)

    made = synthesize(likeness_of(trace), 3200, seed=3)

    changes = int((np.diff(made.ids[:, 0, 0].astype(int)) != 0).sum())
    assert 10 <= changes <= 30, "the recording changes every 160 tokens"


def test_synthetic_trace_keeps_scores_hints_and_licence_with_their_tokens() -> None:
    scores = (TRACE.ids * 3 + 1).astype(np.uint8)
    hints = ((TRACE.ids + 1) % 32).astype(np.uint16)
    rich = dataclasses.replace(TRACE, scores=scores, hints=hints)

    made = synthesize(likeness_of(rich), 100, seed=2)

    assert made.scores is not None
    assert made.hints is not None
    assert (made.scores == made.ids * 3 + 1).all()
    assert (made.hints == (made.ids + 1) % 32).all()
    assert made.origin.licence == TRACE.origin.licence
    assert made.origin.source.startswith("made up from seed 2")


@pytest.mark.parametrize("num_tokens", [1, 2, 7, 9, 40])
def test_synthetic_trace_of_a_short_one_works(num_tokens: int) -> None:
    trace = TRACE.part(num_tokens)

    made = synthesize(likeness_of(trace), 50, seed=1)

    assert {row.tobytes() for row in made.ids} <= {row.tobytes() for row in trace.ids}
    assert made.num_tokens == 50


def test_synthetic_same_seed_same_trace(likeness: Likeness) -> None:
    one, two, other = (synthesize(likeness, 50, seed) for seed in (4, 4, 5))

    assert (one.ids == two.ids).all()
    assert (one.ids != other.ids).any()
    assert one.sequence_tokens == (50,)
