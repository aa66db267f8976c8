"""Slots and residents of all layers: who comes in, who leaves, and that nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, LayerFacts
from runtime.policy.keeper import Admission, SlotKeeper

NUM_EXPERTS = 6
NUM_LAYERS = 3
STEPS = st.lists(
    st.tuples(st.integers(0, NUM_LAYERS - 1), st.sets(st.integers(0, NUM_EXPERTS - 1), min_size=1)),
    max_size=20,
)
NAMES = st.sampled_from([DEFAULT_POLICY, "decayed-shared", "lru", "expected", "slru"])


def keeper_of(name: str, *slots: int) -> SlotKeeper:
    kind = POLICIES[name]
    policies = [
        kind.make(number, LayerFacts(NUM_EXPERTS, index, len(slots)))
        for index, number in enumerate(slots)
    ]
    return SlotKeeper(policies, slots, is_shared=kind.is_shared)


def step(keeper: SlotKeeper, layer: int, needed: list[int], now: int) -> list[Admission | None]:
    """Run a step in which every missing expert asks to come in."""
    missing = keeper.begin(layer, needed, now)
    admissions = [keeper.admit(layer, expert, now) for expert in missing]
    keeper.end(layer, now, is_changed=bool(missing))
    return admissions


@given(
    name=NAMES,
    steps=STEPS,
    slots=st.tuples(*[st.integers(0, NUM_EXPERTS)] * NUM_LAYERS),
    totals=st.lists(st.integers(0, NUM_LAYERS * NUM_EXPERTS), max_size=20),
)
def test_keeper_any_steps_and_totals_residents_are_those_who_came_and_did_not_leave(
    name: str, steps: list[tuple[int, set[int]]], slots: tuple[int, ...], totals: list[int]
) -> None:
    keeper = keeper_of(name, *slots)
    residents: list[set[int]] = [set() for _ in slots]
    total = sum(slots)
    for now, (layer, needed) in enumerate(steps):
        missing = keeper.begin(layer, sorted(needed), now)
        assert missing == sorted(needed - residents[layer])
        for expert in missing:
            admission = keeper.admit(layer, expert, now)
            if admission is not None:
                residents[layer].add(expert)
                if admission.left is not None:
                    residents[admission.left[0]].remove(admission.left[1])
        keeper.end(layer, now, is_changed=bool(missing))
        if now < len(totals):
            total = totals[now]
            for giver, expert in keeper.shrink(total, now):
                residents[giver].remove(expert)
            keeper.grow(total, NUM_EXPERTS, now)
        keeper.check()
        assert sum(keeper.slots) == total
        assert keeper.num_all_free == total - sum(map(len, residents))
        assert all(keeper.residents(index) == kept for index, kept in enumerate(residents))


@pytest.mark.parametrize("name", [DEFAULT_POLICY, "lru"])
def test_keeper_preloaded_experts_are_resident_and_the_first_to_leave(name: str) -> None:
    keeper = keeper_of(name, 2)
    keeper.preload(0, [4, 5], 0)

    (admission,) = step(keeper, 0, [1], 1)

    assert admission == Admission((0, 4))
    assert keeper.residents(0) == {1, 5}
    keeper.remove(0, 5, 1)
    assert keeper.num_free(0) == 1
    assert step(keeper, 0, [3], 2) == [Admission()]


@pytest.mark.parametrize("name", [DEFAULT_POLICY, "lru"])
def test_keeper_spare_experts_leave_first_unless_they_are_locked(name: str) -> None:
    keeper = keeper_of(name, 3)
    for now in range(3):
        step(keeper, 0, [0, 1, 2], now)
    keeper.begin(0, [5], 3)

    assert keeper.admit(0, 5, 3, {1}, spare=[1]) is None
    assert keeper.admit(0, 5, 3, {1}, spare=[1, 2]) == Admission((0, 2))


@pytest.mark.parametrize("name", [DEFAULT_POLICY, "lru", "expected"])
def test_keeper_required_expert_comes_in_unless_all_are_locked(name: str) -> None:
    keeper = keeper_of(name, 2)
    for now in range(9):
        step(keeper, 0, [0, 1], now)
    keeper.begin(0, [5], 9)

    assert keeper.admit(0, 5, 9, {0, 1}, is_required=True) is None
    assert keeper.admit(0, 5, 9, {0}, is_required=True) == Admission((0, 1))


def test_keeper_shared_layer_takes_free_slots_of_others_before_anybody_leaves() -> None:
    keeper = keeper_of(DEFAULT_POLICY, 1, 1, 2)

    admissions = step(keeper, 0, [0, 1, 2], 0)

    assert admissions == [Admission()] * 3
    assert keeper.slots == (3, 0, 1)


def test_keeper_shrunk_gives_up_free_slots_then_the_least_worth_of_all_layers() -> None:
    keeper = keeper_of(DEFAULT_POLICY, 2, 2, 1)
    for now in range(8):
        step(keeper, 0, [0, 1], now)
        step(keeper, 1, [2, 3] if now % 4 == 0 else [2], now)

    assert keeper.shrink(4, 8) == []
    assert keeper.shrink(3, 8) == [(1, 3)]
    assert keeper.slots == (2, 1, 0)


def test_keeper_grown_beyond_all_experts_is_refused() -> None:
    keeper = keeper_of(DEFAULT_POLICY, 1, 2)

    keeper.grow(5, 3, 0)
    assert keeper.slots == (3, 2)
    with pytest.raises(ValueError, match="7 slots for 2 x 3"):
        keeper.grow(7, 3, 0)


def test_keeper_policy_that_cannot_rank_is_refused_shared_slots() -> None:
    policies = [POLICIES["lru"].make(1, LayerFacts(NUM_EXPERTS))]

    with pytest.raises(ValueError, match="only ranking policies"):
        SlotKeeper(policies, [1], is_shared=True)


def test_keeper_weights_reach_the_policies_that_look_at_them() -> None:
    keeper, other = keeper_of("score-average", 1, 1), keeper_of("lru", 1)
    assert (keeper.takes_weights, other.takes_weights) == (True, False)

    for now, (expert, weight) in enumerate([(1, 0.9), (2, 0.1), (3, 0.4)]):
        for each in (keeper, other):
            each.weigh(0, [expert], [weight])
        step(keeper, 0, [expert], now)

    # The second was not worth the slot of the first, the third is.
    assert keeper.residents(0) == {3}
