"""What every policy of the catalogue must keep to, whoever drives it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.base import Policy, RankingPolicy
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, LayerFacts, PolicyKind
from tests.support.policy_drive import NUM_EXPERTS, STEPS, drive, facts_of

every_kind = pytest.mark.parametrize("kind", POLICIES.values(), ids=lambda kind: kind.name)


def make(kind: PolicyKind, num_slots: int, facts: LayerFacts | None = None) -> Policy:
    return kind.make(num_slots, LayerFacts(NUM_EXPERTS) if facts is None else facts)


def test_catalogue_default_is_in_it() -> None:
    assert DEFAULT_POLICY in POLICIES


@every_kind
@given(steps=STEPS, num_slots=st.integers(1, NUM_EXPERTS), is_forced=st.booleans())
def test_policy_any_needs_names_unlocked_residents_and_repeats_itself(
    kind: PolicyKind, steps: list[list[int]], num_slots: int, is_forced: bool
) -> None:
    first, second = (make(kind, num_slots, facts_of(steps)) for _ in range(2))

    events = drive(first, steps, num_slots, is_forced=is_forced)

    assert events == drive(second, steps, num_slots, is_forced=is_forced)


@every_kind
def test_policy_without_slots_admits_nobody(kind: PolicyKind) -> None:
    policy = make(kind, 0)

    assert not policy.admit(1, 0)
    assert not policy.admit(1, 1)
    assert policy.victim((), 1) is None


@every_kind
def test_policy_more_experts_than_slots_is_refused(kind: PolicyKind) -> None:
    policy = make(kind, 1)
    policy.insert(3, 0)

    with pytest.raises(ValueError, match="resident already"):
        policy.insert(3, 1)
    with pytest.raises(ValueError, match="slots are taken"):
        policy.insert(4, 1)


@every_kind
def test_policy_resized_keeps_residents_and_refuses_to_lose_them(kind: PolicyKind) -> None:
    policy = make(kind, 2)
    for expert in (4, 1):
        policy.insert(expert, 0)

    policy.resize(3)
    policy.insert(7, 1)
    with pytest.raises(ValueError, match="2 slots for 3"):
        policy.resize(2)

    left = set()
    for _ in range(3):
        victim = policy.victim((), 2)
        assert victim is not None
        policy.remove(victim)
        left.add(victim)
    policy.resize(0)
    assert left == {1, 4, 7}


@every_kind
def test_shared_kind_can_rank(kind: PolicyKind) -> None:
    assert not kind.is_shared or isinstance(make(kind, 1), RankingPolicy)
