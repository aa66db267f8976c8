"""Ranking policies against models that look at the whole history each time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.expected import Expectation, ExpectedUsePolicy
from runtime.policy.frequency import DecayedPolicy, LfuPolicy
from runtime.policy.ranked import RankedPolicy
from runtime.policy.recency import LfruPolicy, Lru2Policy
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
