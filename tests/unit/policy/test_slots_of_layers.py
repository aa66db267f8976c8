"""Splitting slots beforehand, and exchanging them while running."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.exchange import SlotExchange
from runtime.policy.frequency import DecayedPolicy
from runtime.policy.split import even_split, split_by_gain


@given(num_layers=st.integers(1, 9), total=st.integers(0, 90), most=st.integers(1, 9))
def test_even_split_any_total_differs_by_one_at_most(
    num_layers: int, total: int, most: int
) -> None:
    slots = even_split(num_layers, total, most)

    assert sum(slots) == min(total, num_layers * most)
    assert max(slots) - min(slots) <= 1


@given(
    gains=st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3), min_size=1, max_size=3),
    total=st.integers(0, 9),
)
def test_split_by_gain_curves_that_bend_down_equals_the_best(
    gains: list[list[int]], total: int
) -> None:
    curves = [[0, *itertools.accumulate(sorted(layer, reverse=True))] for layer in gains]

    slots = split_by_gain(curves, total)

    ways = itertools.product(range(4), repeat=len(curves))
    best = max(
        sum(curve[number] for curve, number in zip(curves, way, strict=True))
        for way in ways
        if sum(way) <= total
    )
    assert sum(curve[n] for curve, n in zip(curves, slots, strict=True)) == best
    assert sum(slots) == min(total, 3 * len(curves))


def test_split_by_gain_curve_that_starts_flat_is_no_trap() -> None:
    assert split_by_gain([[0, 0, 0, 30], [0, 5, 6, 7]], 4) == (3, 1)


def test_split_by_gain_too_few_for_the_least_is_refused() -> None:
    assert split_by_gain([[0, 1, 2], [0, 9, 11]], 3, min_slots=1) == (1, 2)
    with pytest.raises(ValueError, match="1 slots for 2 layers"):
        split_by_gain([[0, 1, 2], [0, 9, 10]], 1, min_slots=1)


def layers(uses: list[dict[int, int]]) -> list[DecayedPolicy]:
    """Return policies whose experts were needed in so many steps, all resident."""
    policies = []
    for layer in uses:
        policy = DecayedPolicy(4, 0.9)
        for now in range(10):
            policy.need([expert for expert, number in layer.items() if number > now], now)
        for expert in layer:
            policy.insert(expert, 9)
        policies.append(policy)
    return policies


def exchange_of(policies: list[DecayedPolicy], min_slots: int = 0) -> SlotExchange:
    exchange = SlotExchange(policies, min_slots)
    for index in range(len(policies)):
        exchange.note_change(index, 2, 9)
    return exchange


def test_exchange_lowest_of_all_layers_leaves() -> None:
    policies = layers([{0: 9, 1: 8}, {0: 9, 1: 1}, {0: 9, 1: 5}])
    exchange = exchange_of(policies)

    victim = exchange.victim(0, (), 9)

    assert victim is not None
    assert (victim.layer_index, victim.expert) == (1, 1)
    assert exchange.admits(0, 0, victim, 9)
    assert not exchange.admits(1, 1, victim, 9)


def test_exchange_layer_of_its_own_leaves_if_lowest() -> None:
    exchange = exchange_of(layers([{0: 9, 1: 8}, {0: 9, 1: 1}]))

    own = exchange.victim(1, (), 9)
    other = exchange.victim(1, {0, 1}, 9)

    assert own is not None
    assert (own.layer_index, own.expert) == (1, 1)
    assert other is not None
    assert (other.layer_index, other.expert) == (0, 1)


def test_exchange_layers_at_their_least_give_nothing() -> None:
    exchange = exchange_of(layers([{0: 9, 1: 8}, {0: 9, 1: 1}]), min_slots=2)

    own = exchange.victim(0, (), 9)

    assert own is not None
    assert own.layer_index == 0
    assert exchange.victim(0, {0, 1}, 9) is None


def test_exchange_layer_that_rose_since_is_looked_up_again() -> None:
    policies = layers([{0: 9, 1: 8}, {0: 9, 1: 1}])
    exchange = exchange_of(policies)
    for now in range(10, 30):
        policies[1].need([0, 1], now)
    exchange.note_step(1, 29)

    victim = exchange.victim(0, (), 29)

    assert victim is not None
    assert victim.layer_index == 0


def test_exchange_layer_that_computed_often_is_looked_up_again() -> None:
    policies = layers([{0: 9, 1: 8}, {0: 9, 1: 7}])
    exchange = exchange_of(policies)
    for now in range(10, 40):
        policies[1].need([0], now)
        exchange.note_step(1, now)

    victim = exchange.victim(0, (), 39)

    assert victim is not None
    assert (victim.layer_index, victim.expert) == (1, 1)
