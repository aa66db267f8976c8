"""How well models suit offloading, by counts worked out by hand."""

import dataclasses

import msgspec
import pytest

from runtime.plan.planner import plan_model
from runtime.plan.suitability import (
    FAMILIES,
    LEAST_FAIRLY,
    LEAST_WELL,
    segment_ratio,
    suitability_of,
)
from runtime.protocol.model import SuitabilityRating
from runtime.protocol.plan import ReasonCode
from runtime.protocol.sentences import reason_sentence
from runtime.protocol.values import Budgets, HitsBasis
from runtime.spec.past import RoutingCounts
from tests.support.plan_cases import GIB, facts, machine, spec

MODEL = spec()


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        # Two experts of four, always the same two: both tokens choose them, nobody the others.
        ((2, 0, 2), 1.0),
        # Each of three experts is chosen by one of two tokens: told to be chosen by both, half is
        # right and all are found: 2 * 3 / (6 + 3).
        ((1, 3, 0), 2 / 3),
        # One chosen by both, two by one each. The sure one alone: 2 * 2 / (2 + 4) = 2/3. All three:
        # 2 * 4 / (6 + 4) = 4/5.
        ((5, 2, 1), 4 / 5),
        # One by all three tokens, six by one each. The sure one alone: 2 * 3 / (3 + 9) = 1/2. All
        # seven: 2 * 9 / (21 + 9) = 3/5.
        ((0, 6, 0, 1), 3 / 5),
        # Three by all of four tokens, four by one each. The three: 2 * 12 / (12 + 16) = 6/7.
        ((9, 4, 0, 0, 3), 6 / 7),
        ((7, 0, 0), 0.0),
    ],
)
def test_segment_ratio_of_counts_by_hand(uses: tuple[int, ...], expected: float) -> None:
    assert segment_ratio(uses) == pytest.approx(expected)


def counts(num_tokens: int = 300) -> RoutingCounts:
    """Half of what is chosen can be told: 16 of 24 told are right, of 32 chosen."""
    uses = (100, 24, *[0] * 14, 1)
    return RoutingCounts(uses, (40, 60, 80), 100, num_tokens)


def test_own_routing_comes_before_that_of_the_family() -> None:
    own = suitability_of(MODEL, counts())
    assert own is not None
    assert own.segment_ratio == pytest.approx(2 * 16 / (16 + 40))
    assert (own.rating, own.basis, own.num_tokens) == (
        SuitabilityRating.WELL, HitsBasis.OWN, 300,
    )  # fmt: skip
    assert own.hit_ratios == [0.4, 0.6, 0.8]
    for few in (None, counts(20), dataclasses.replace(counts(), num_needs=0)):
        family = suitability_of(MODEL, few)
        assert family is not None
        assert (family.basis, family.segment_ratio) == (HitsBasis.FAMILY, FAMILIES["qwen3_moe"][0])
        assert len(family.hit_ratios) == 3


@pytest.mark.parametrize(
    ("model_type", "rating"),
    [
        ("qwen3_vl_moe", SuitabilityRating.WELL),
        ("mixtral", SuitabilityRating.WELL),
        ("deepseek_v3", SuitabilityRating.FAIRLY),
    ],
)
def test_families_are_rated(model_type: str, rating: SuitabilityRating) -> None:
    found = suitability_of(dataclasses.replace(MODEL, model_type=model_type))
    assert found is not None
    assert found.rating is rating


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert suitability_of(dataclasses.replace(MODEL, model_type="granitemoe")) is None
    dense = spec(num_layers=4, num_dense_layers=4, num_experts=0, top_k=0, expert_width=0)
    assert suitability_of(dense, counts()) is None


@pytest.mark.parametrize(
    ("ratio", "code"),
    [
        (LEAST_WELL, ReasonCode.SUITS_WELL),
        (LEAST_FAIRLY, ReasonCode.SUITS_FAIRLY),
        (LEAST_FAIRLY - 0.01, ReasonCode.SUITS_BADLY),
    ],
)
def test_plans_say_it_where_experts_lie_in_two_places(ratio: float, code: ReasonCode) -> None:
    known = suitability_of(MODEL, counts())
    assert known is not None
    # Of 1000 chosen so many can be told for sure, the others are spread over as many experts.
    sure = round(1000 * ratio / (2 - ratio) / 16)
    uses = (0, 1000 - 16 * sure, *[0] * 14, sure)
    assert segment_ratio(uses) == pytest.approx(2 * 16 * sure / (16 * sure + 1000))
    rated = msgspec.structs.replace(known, rating=_rating_of(code), segment_ratio=ratio)
    about = facts(MODEL)
    about = dataclasses.replace(
        about, report=msgspec.structs.replace(about.report, suitability=rated)
    )
    here = machine(total_gib=64, available_gib=60)
    divided, whole = (
        plan_model(about, here, Budgets(ram_bytes=size))[0] for size in (20 * GIB, 60 * GIB)
    )
    reasons = {reason.code: reason.parameters for reason in divided.reasons}
    assert reasons[code] == {"percent": round(100 * ratio, 1)}
    (reason,) = (each for each in divided.reasons if each.code is code)
    assert f"suits offloading {rated.rating.value}" in reason_sentence(reason)
    assert "?" not in reason_sentence(reason)
    assert code not in {reason.code for reason in whole.reasons}


def _rating_of(code: ReasonCode) -> SuitabilityRating:
    return SuitabilityRating(code.value.removeprefix("suits_"))
