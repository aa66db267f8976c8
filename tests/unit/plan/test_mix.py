"""Formats of the parts of a model under a number of bytes."""

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.plan.mix import Choice, Part, choose_formats, choose_mix
from runtime.protocol.values import WeightFormat
from runtime.spec.mix import MIX_FORMATS, Mix
from runtime.spec.tensors import ExpertId

_Q2, _Q3, _Q4, _Q6, _Q8 = MIX_FORMATS


def _part(name: str, *choices: tuple[WeightFormat, int, float]) -> Part[str]:
    return Part(name, [Choice(*each) for each in choices])


def test_often_used_parts_get_more_bits() -> None:
    often = _part("often", (_Q2, 2, 9.0), (_Q4, 4, 1.0), (_Q8, 8, 0.0))
    seldom = _part("seldom", (_Q2, 2, 0.9), (_Q4, 4, 0.1), (_Q8, 8, 0.0))
    never = _part("never", (_Q2, 2, 0.0), (_Q4, 4, 0.0), (_Q8, 8, 0.0))
    parts = [never, seldom, often]
    assert choose_mix(parts, 5) is None
    assert choose_mix(parts, 6) == {"never": _Q2, "seldom": _Q2, "often": _Q2}
    assert choose_mix(parts, 8) == {"never": _Q2, "seldom": _Q2, "often": _Q4}
    # Of eight bits, the often used part gains more than the other one of four.
    assert choose_mix(parts, 10) == {"never": _Q2, "seldom": _Q4, "often": _Q4}
    assert choose_mix(parts, 100) == {"never": _Q2, "seldom": _Q8, "often": _Q8}


def test_what_has_no_room_leaves_it_to_smaller_parts() -> None:
    large = _part("large", (_Q2, 20, 100.0), (_Q4, 40, 0.0))
    small = _part("small", (_Q2, 2, 1.0), (_Q4, 4, 0.0))
    assert choose_mix([large, small], 24) == {"large": _Q2, "small": _Q4}


def test_choices_that_are_no_use_are_passed_over() -> None:
    # Three bits gain less for a byte than four: either two or four.
    part = _part("one", (_Q2, 2, 10.0), (_Q3, 3, 9.0), (_Q4, 4, 1.0), (_Q6, 6, 2.0), (_Q8, 4, 5.0))
    assert choose_mix([part], 3) == {"one": _Q2}
    assert choose_mix([part], 100) == {"one": _Q4}


_CHOICES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=1, max_size=4)


@given(st.lists(_CHOICES, min_size=1, max_size=4), st.integers(1, 30))
def test_mixes_are_within_the_budget_and_nearly_the_best(
    drawn: list[list[tuple[int, int]]], budget: int
) -> None:
    parts = [
        Part(
            index,
            [Choice(MIX_FORMATS[place], size, error) for place, (size, error) in enumerate(each)],
        )
        for index, each in enumerate(drawn)
    ]
    found = choose_mix(parts, budget)
    sums = [
        (sum(one.num_bytes for one in way), sum(one.error for one in way))
        for way in itertools.product(*(part.choices for part in parts))
    ]
    within = [error for size, error in sums if size <= budget]
    if found is None:
        assert not within
        return
    chosen = [next(one for one in part.choices if one.format is found[part.name]) for part in parts]
    size, error = sum(one.num_bytes for one in chosen), sum(one.error for one in chosen)
    assert size <= budget
    # No worse than the best with the largest step less.
    most = max(one.num_bytes for part in parts for one in part.choices)
    best_with_less = [other for taken, other in sums if taken <= budget - most]
    assert not best_with_less or error <= min(best_with_less)
    assert found == choose_mix(parts, budget)


def test_a_mix_has_a_name_and_a_most_common_format() -> None:
    experts = {ExpertId(0, 0): _Q3, ExpertId(0, 1): _Q3, ExpertId(1, 0): _Q6}
    mix = Mix(experts, {"lm_head.weight": _Q8})
    assert mix.most_common is _Q3
    assert Mix({**experts, ExpertId(1, 1): _Q6}, {}).most_common is _Q6
    again = Mix(dict(reversed(experts.items())), {"lm_head.weight": _Q8})
    assert mix.identity == again.identity
    assert mix.identity != Mix(experts, {}).identity


def test_parts_need_choices() -> None:
    with pytest.raises(IndexError):
        choose_mix([Part("none", [])], 1)


def _sums(parts: list[Part[int]], chosen: Mapping[int, WeightFormat]) -> tuple[int, float]:
    taken = [next(one for one in part.choices if one.format is chosen[part.name]) for part in parts]
    return sum(one.num_bytes for one in taken), sum(one.error for one in taken)


_WHOLE = st.lists(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=3, max_size=3),
    min_size=1,
    max_size=4,
)


@given(_WHOLE, st.integers(1, 40), st.sampled_from((0.0, 1.0, 50.0)))
def test_what_is_chosen_is_never_worse_than_one_format_that_has_room(
    drawn: list[list[tuple[int, int]]], budget: int, unavoidable: float
) -> None:
    parts = [
        Part(
            index,
            [Choice(MIX_FORMATS[place], size, error) for place, (size, error) in enumerate(each)],
        )
        for index, each in enumerate(drawn)
    ]
    found = choose_formats(parts, budget, unavoidable)
    assert found == choose_formats(parts, budget, unavoidable)
    alone = [_sums(parts, dict.fromkeys(range(len(parts)), each)) for each in MIX_FORMATS[:3]]
    within = [error for size, error in alone if size <= budget]
    if found is None:
        assert not within
        return
    size, error = _sums(parts, found)
    assert size <= budget
    if not within:
        return
    assert error <= min(within)
    if len(set(found.values())) > 1:
        assert min(within) - error > 0.1 * (min(within) + unavoidable)


def test_a_mix_that_promises_little_gives_way_to_one_format() -> None:
    often = _part("often", (_Q2, 2, 40.0), (_Q3, 3, 10.0), (_Q4, 4, 3.0))
    seldom = _part("seldom", (_Q2, 2, 12.0), (_Q3, 3, 10.0), (_Q4, 4, 3.0))
    mix = {"often": _Q4, "seldom": _Q2}
    assert choose_formats([often, seldom], 6, 0.0) == mix
    # Beside what any change brings, what the mix gains of 20 would hardly be seen.
    assert choose_formats([often, seldom], 6, 29.0) == mix
    assert choose_formats([often, seldom], 6, 31.0) == {"often": _Q3, "seldom": _Q3}
    assert choose_formats([often, seldom], 3, 0.0) is None
    # Where no format is one of all parts there is nothing to compare with.
    other = _part("other", (_Q6, 2, 1.0))
    assert choose_formats([often, other], 4, 9.0) == {"often": _Q2, "other": _Q6}
