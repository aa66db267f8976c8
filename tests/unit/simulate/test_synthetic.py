"""Made-up traces: like the one they imitate, and the same for the same seed."""

import pytest

from runtime.policy.catalogue import POLICIES
from runtime.simulate.hygiene import complaints, reuse_share, uses
from runtime.simulate.replay import replay
from runtime.simulate.synthetic import Likeness, likeness_of, synthesize
from tests.support.traces import sticky_trace

TRACE = sticky_trace(num_tokens=800, num_layers=8, num_experts=32, top_k=4)


@pytest.fixture(scope="module")
def likeness() -> Likeness:
    return likeness_of(TRACE, num_tries=150)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_synthetic_trace_reuses_and_hits_like_the_one_it_imitates(
    likeness: Likeness, seed: int
) -> None:
    made = synthesize(likeness, 800, seed)

    assert complaints(made) == []
    assert (made.num_experts, made.layers, made.top_k) == (32, TRACE.layers, 4)
    for lag in (1, 2, 4, 8, 16):
        assert reuse_share(made, lag) == pytest.approx(reuse_share(TRACE, lag), abs=0.04)
    for num_slots in (8, 16):
        slots = [num_slots] * 8
        found, wanted = (replay(trace, POLICIES["lru"], slots) for trace in (made, TRACE))
        assert found.hit_ratio == pytest.approx(wanted.hit_ratio, abs=0.04)
    favourites = uses(TRACE).argmax(axis=1)
    for layer, expert in enumerate(favourites):
        assert uses(made)[layer, expert] > 1.5 * uses(made)[layer].mean()


def test_synthetic_same_seed_same_trace(likeness: Likeness) -> None:
    one, two, other = (synthesize(likeness, 50, seed) for seed in (4, 4, 5))

    assert (one.ids == two.ids).all()
    assert (one.ids != other.ids).any()
    assert one.sequence_tokens == (50,)
