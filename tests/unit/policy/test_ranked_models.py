"""Ranking policies against models that look at the whole history each time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.expected import Expectation, ExpectedUsePolicy
from runtime.policy.frequency import DecayedPolicy, LfuPolicy
from runtime.policy.ranked import RankedPolicy
from runtime.policy.recency import LfruPolicy, Lru2Policy
from runtime.policy.score import LayerPosition, ScoreAveragePolicy
from tests.support import policy_models

NUM_EXPERTS = 8
CASES = {
    "lru-2": (Lru2Policy, policy_models.lru_2),
    "lfru": (LfruPolicy, policy_models.lfru),
    "lfu": (lambda slots: LfuPolicy(slots, 4), policy_models.lfu(4)),
    "decayed": (lambda slots: DecayedPolicy(slots, 0.9), policy_models.decayed(0.9)),
    "decayed, unit often reset": (
        lambda slots: DecayedPolicy(slots, 1e-30),
        policy_models.decayed(1e-30),
    ),
    "score-average, no weights told": (ScoreAveragePolicy, policy_models.decayed(0.5)),
    "expected": (
        lambda slots: ExpectedUsePolicy(slots, NUM_EXPERTS),
        policy_models.expected_use(NUM_EXPERTS),
    ),
}
STEPS = st.lists(
    st.lists(st.integers(0, NUM_EXPERTS - 1), min_size=1, max_size=5, unique=True), max_size=14
)


@pytest.mark.parametrize("case", CASES)
@given(
    steps=STEPS, num_slots=st.integers(1, NUM_EXPERTS), is_told=st.booleans(), is_free=st.booleans()
)
def test_ranked_policy_any_needs_decides_as_the_model(
    case: str, steps: list[list[int]], num_slots: int, is_told: bool, is_free: bool
) -> None:
    make, worth = CASES[case]
    policy: RankedPolicy = make(num_slots)
    history: list[list[int]] = []
    residents: set[int] = set()
    for index, step in enumerate(steps):
        now = 7 * index
        seen: list[int] = []
        history.append(seen)
        if is_told:
            policy.need(step, now)
            seen += step
        hits = [expert for expert in step if expert in residents]
        policy.touch(hits, now)
        seen += [expert for expert in hits if expert not in seen]
        for expert in [expert for expert in step if expert not in hits]:
            seen += [] if is_told else [expert]
            is_admitted = policy.admit(expert, now)
            if len(residents) < num_slots:
                assert is_admitted
            else:
                lowest = min(worth(history, resident) for resident in residents)
                victim = policy.victim((), now)
                assert victim is not None
                assert worth(history, victim) == pytest.approx(lowest, rel=1e-3, abs=1e-6)
                gain = worth(history, expert) - lowest
                if policy.is_selective and abs(gain) > 1e-3:
                    assert is_admitted == (gain > 0)
                if not is_admitted and is_free:
                    continue
                policy.remove(victim)
                residents.remove(victim)
            policy.insert(expert, now)
            residents.add(expert)
        for expert in range(NUM_EXPERTS):
            assert policy.worth(expert, now) == pytest.approx(
                worth(history, expert), rel=1e-3, abs=1e-6
            )


def test_expected_use_after_many_steps_is_still_exact() -> None:
    sharp = Expectation((1e-3, 0.9), (0.5, 0.5), follower_rate=0.999)
    policy = ExpectedUsePolicy(2, 4, sharp)
    worth = policy_models.expected_use(4, sharp.decays, sharp.weights, rate=0.999)
    history = [[0, 1], [1, 2], [0, 3]] * 12

    for now, step in enumerate(history):
        policy.need(step, now)

    for expert in range(4):
        assert policy.worth(expert, 0) == pytest.approx(worth(history, expert), rel=1e-3)


def test_decayed_decay_that_never_fades_is_refused() -> None:
    with pytest.raises(ValueError, match="a decay between 0 and 1"):
        DecayedPolicy(1, 1.0)


def test_expected_use_before_anything_was_needed_is_nothing() -> None:
    policy = ExpectedUsePolicy(2, 4)

    assert policy.worth(1, 0) == 0
    assert policy.victim((), 0) is None
    policy.insert(2, 0)
    assert policy.victim({2}, 0) is None
    assert policy.victim((), 0) == 2


@given(
    steps=st.lists(
        st.dictionaries(st.integers(0, NUM_EXPERTS - 1), st.floats(0, 1), min_size=1), max_size=20
    )
)
def test_score_average_any_weights_is_their_fading_sum(steps: list[dict[int, float]]) -> None:
    policy = ScoreAveragePolicy(2, rate=0.25)

    for now, weights in enumerate(steps):
        policy.weigh(list(weights), list(weights.values()))
        policy.need(list(weights), now)

    for expert in range(NUM_EXPERTS):
        wanted = sum(
            0.25 * 0.75 ** (len(steps) - 1 - index) * weights.get(expert, 0)
            for index, weights in enumerate(steps)
        )
        assert policy.worth(expert, 99) == pytest.approx(wanted)


def test_score_average_weights_hold_for_one_step() -> None:
    policy = ScoreAveragePolicy(2, rate=0.5)
    policy.weigh([1], [0.5])

    policy.need([1], 0)
    assert policy.worth(1, 0) == pytest.approx(0.25)
    policy.need([1], 1)
    assert policy.worth(1, 1) == pytest.approx(0.125 + 0.5)


def test_score_average_layer_that_comes_next_is_worth_most_and_the_present_one_least() -> None:
    position = LayerPosition()
    policies = [ScoreAveragePolicy(1, 0.5, index, 4, position, 0.4) for index in range(4)]
    for now, policy in enumerate(policies):
        policy.insert(2, now)

    policies[1].need([], 9)

    assert [policy.worth(7, 9) for policy in policies] == pytest.approx([0.1, 0.0, 0.3, 0.2])
    assert policies[2].lowest((), 9) == (policies[2].worth(2, 9), 2)
    assert policies[2].lowest({2}, 9) is None
