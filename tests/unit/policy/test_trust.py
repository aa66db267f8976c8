"""The LRU that runs beside the default, and what becomes of expectations that are wrong."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES
from runtime.policy.expected import ExpectedUsePolicy
from runtime.policy.keeper import SlotKeeper
from runtime.policy.lru import LruPolicy
from runtime.policy.trust import Doubt, Trust
from runtime.simulate.replay import Entry, replay
from tests.support.traces import sticky_trace, trace_of

NUM_EXPERTS = 10
POINT = 0.01


def rows() -> st.SearchStrategy[list[list[int]]]:
    row = st.lists(st.integers(0, NUM_EXPERTS - 1), min_size=1, max_size=4, unique=True)
    return st.lists(row, min_size=1, max_size=40)


@given(rows(), st.integers(4, 8))
def test_trust_any_needs_loses_what_an_even_lru_hits(needs: list[list[int]], slots: int) -> None:
    lru = SlotKeeper([LruPolicy(slots)], [slots], is_shared=False)
    trust = Trust(1, Doubt(max_loss=1e9))
    trust.resize(slots)
    lost = 0.0
    for now, row in enumerate(needs):
        missing = lru.begin(0, row, now)
        # Told of a cache that held nobody: all that the LRU hits is lost.
        trust.note(0, row, len(row))
        assert not trust.settle()
        lost += (len(row) - len(missing)) / len(row)
        # The order of an LRU here is that of the row, whether somebody was missing or not.
        for expert in missing:
            lru.admit(0, expert, now, row)
        residents = [expert for expert in row if expert in lru.residents(0)]
        lru.begin(0, residents, now)

    assert trust.loss == pytest.approx(lost)


def beliefs(trust: Trust, num_steps: int) -> list[bool]:
    """Return what is believed after each of steps in which all is missed that an LRU would hit."""
    trust.resize(2)
    states = []
    for _ in range(num_steps):
        trust.note(0, [1, 2], 2)
        trust.settle()
        states.append(trust.is_believed)
    return states


def test_trust_ends_after_the_loss_and_comes_back_after_ever_longer_pauses() -> None:
    doubt = Doubt(1.5, max_loss_alone=0, pause_steps=3, pause_factor=2, loss_factor=1.0)
    states = beliefs(Trust(1, doubt), 20)

    # The first step is nobody's; then each loses one, and the second such ends it.
    pauses = [True, True] + [False] * 3 + [True, True] + [False] * 6 + [True, True] + [False] * 5
    assert states == pauses


def test_trust_pauses_as_long_when_slots_are_given_up_between_steps() -> None:
    trust = Trust(1, Doubt(max_loss=0.5, max_loss_alone=0, pause_steps=2))
    trust.resize(2)
    for _ in range(2):
        trust.note(0, [1, 2], 2)
        trust.settle()
    assert not trust.is_believed
    for _ in range(10):
        assert not trust.settle()

    assert not trust.is_believed


def test_trust_that_came_back_may_lose_less_each_time() -> None:
    doubt = Doubt(4.0, max_loss_alone=0, pause_steps=1, pause_factor=1, loss_factor=0.5)
    states = beliefs(Trust(1, doubt), 14)

    # After the first step, which is nobody's: more than 4 are lost, than 2, than 1, than a half.
    assert states == [True] * 5 + [False] + [True] * 3 + [False, True, True, False, True]


def test_trust_changes_are_told_when_they_happen() -> None:
    trust = Trust(1, Doubt(max_loss=0.5, max_loss_alone=0, pause_steps=2))
    trust.resize(2)
    changes = []
    for _ in range(4):
        trust.note(0, [1, 2], 2)
        changes.append(trust.settle())

    assert changes == [False, True, False, True]


def test_trust_that_was_ahead_may_lose_no_more_than_its_credit() -> None:
    trust = Trust(1, Doubt(max_loss=0.5, max_loss_alone=0, max_credit=2.0))
    trust.resize(2)
    for expert in range(0, 40, 2):
        trust.note(0, [expert, expert + 1], 0)
        trust.settle()
    assert trust.loss == -2.0
    for _ in range(3):
        trust.note(0, [0, 1], 2)
        trust.settle()

    assert trust.is_believed
    trust.note(0, [0, 1], 2)
    assert trust.settle()
    assert not trust.is_believed


def test_trust_learns_nothing_from_steps_that_need_more_than_fits() -> None:
    trust = Trust(1)
    trust.resize(2)
    for _ in range(10):
        trust.note(0, [1, 2, 3], 3)
        trust.settle()

    assert trust.loss == 0


@given(rows())
def test_doubted_expectation_ranks_by_last_use(needs: list[list[int]]) -> None:
    policy = ExpectedUsePolicy(NUM_EXPERTS, NUM_EXPERTS)
    policy.believe(is_believed=False)
    last: dict[int, int] = {}
    for now, row in enumerate(needs):
        policy.need(row, now)
        last |= dict.fromkeys(row, now)
    now = len(needs) - 1

    for first in last:
        for second in last:
            if last[first] > last[second]:
                assert policy.worth(first, now) > policy.worth(second, now)


def test_doubted_expectation_prefers_one_use_to_any_number_of_older_ones() -> None:
    policy = ExpectedUsePolicy(2, NUM_EXPERTS)
    policy.believe(is_believed=False)
    for now in range(100):
        policy.need([1], now)
    policy.need([2], 100)

    assert policy.worth(2, 100) > policy.worth(1, 100)


def test_doubted_expectation_prefers_the_more_used_of_one_age() -> None:
    policy = ExpectedUsePolicy(2, NUM_EXPERTS)
    policy.believe(is_believed=False)
    policy.need([1], 0)
    policy.need([1, 2], 1)
    for now in range(2, 100):
        policy.need([3], now)

    assert policy.worth(1, 99) > policy.worth(2, 99)


@pytest.mark.parametrize("is_asked", [False, True])
def test_change_of_belief_leaves_the_worths_of_its_own_step(is_asked: bool) -> None:
    policy = ExpectedUsePolicy(2, NUM_EXPERTS)
    policy.need([1], 0)
    policy.need([2], 1)
    if is_asked:
        policy.worth(1, 1)
    policy.believe(is_believed=False)

    assert policy.worth(1, 1) > 0
    policy.need([3], 2)
    assert policy.worth(1, 2) < 0


def test_belief_that_comes_back_ranks_as_if_it_had_stayed() -> None:
    policies = [ExpectedUsePolicy(4, NUM_EXPERTS) for _ in range(2)]
    for now, row in enumerate(([1, 2], [2, 3], [1, 4], [2, 3])):
        for policy in policies:
            policy.need(row, now)
        policies[0].believe(is_believed=now == 2)
    policies[0].believe(is_believed=True)
    for policy in policies:
        policy.need([5], 4)

    for expert in range(NUM_EXPERTS):
        assert policies[0].worth(expert, 4) == policies[1].worth(expert, 4)


@pytest.mark.parametrize(("num_experts", "top_k"), [(16, 2), (64, 8), (128, 8)])
@pytest.mark.parametrize("share", [0.125, 0.25])
def test_default_on_routing_that_suits_lru_is_not_half_a_point_below_it(
    num_experts: int, top_k: int, share: float
) -> None:
    # A slowly moving score without any noise: the last use says nearly all there is to know.
    trace = sticky_trace(1500, 8, num_experts, top_k)
    slots = [int(share * num_experts)] * trace.num_layers
    lru = replay(trace, POLICIES["lru"], slots).hit_ratio

    assert replay(trace, POLICIES[DEFAULT_POLICY], slots).hit_ratio >= lru - 0.5 * POINT


@pytest.mark.parametrize("stay_steps", [1, 4])
def test_default_on_a_sliding_set_is_not_half_a_point_below_lru(stay_steps: int) -> None:
    # One of 8 is exchanged every so many steps, and never comes back before 64 others have.
    first = np.arange(1500)[:, None, None] // stay_steps
    ids = (first + np.arange(8) + 5 * np.arange(4)[None, :, None]) % 64
    trace = trace_of(ids.tolist(), 64)
    lru = replay(trace, POLICIES["lru"], [8] * 4).hit_ratio

    assert replay(trace, POLICIES[DEFAULT_POLICY], [8] * 4).hit_ratio >= lru - 0.5 * POINT


@pytest.mark.parametrize(("num_experts", "top_k"), [(32, 4), (64, 8)])
@pytest.mark.parametrize("share", [0.125, 0.25])
def test_default_of_one_layer_whose_routing_suits_lru_is_not_half_a_point_below_it(
    num_experts: int, top_k: int, share: float
) -> None:
    trace = sticky_trace(1500, 1, num_experts, top_k)
    slots = [int(share * num_experts)]
    lru = replay(trace, POLICIES["lru"], slots).hit_ratio

    assert replay(trace, POLICIES[DEFAULT_POLICY], slots).hit_ratio >= lru - 0.5 * POINT


@pytest.mark.parametrize("entry", Entry)
def test_doubt_decides_alike_whether_steps_are_told_before_or_not(entry: Entry) -> None:
    trace = sticky_trace(500, 3, 64, 8)
    kind = POLICIES[DEFAULT_POLICY]
    untold = dataclasses.replace(kind, foreteller=None)

    told = replay(trace, kind, [8] * 3, entry)

    assert told.layers == replay(trace, untold, [8] * 3, entry).layers
