"""Hits by slots: near recorded routing, a model's own before its family's, never uniform."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.plan.hits import MIN_OWN_TOKENS, HitCurve, curve_of
from runtime.protocol.values import HitsBasis
from runtime.spec.model import ModelSpec
from runtime.spec.past import ReuseCounts
from tests.support.plan_cases import spec

MODEL = spec()
ALL = 48 * 128


def of_type(model_type: str, num_experts: int, top_k: int) -> ModelSpec:
    return dataclasses.replace(spec(num_experts=num_experts, top_k=top_k), model_type=model_type)


def counts(of: ModelSpec, ranks: dict[int, int], num_tokens: int = MIN_OWN_TOKENS) -> ReuseCounts:
    found = [0] * of.num_experts
    for rank, number in ranks.items():
        found[rank] = number
    return ReuseCounts(tuple(found), num_tokens)


def hits_at(curve: HitCurve, share: float) -> float:
    return curve.ratio(int(share * (len(curve.hits) - 1)) * curve.num_layers)


@pytest.mark.parametrize(
    ("num_experts", "top_k", "hits"),
    [
        # Shares of 12.5, 25, 50 and 75 % of the experts, plain recency over recorded routing.
        (32, 4, (0.427, 0.640, 0.892, 0.980)),
        (128, 8, (0.567, 0.774, 0.940, 0.990)),
        (64, 6, (0.324, 0.616, 0.850, 0.975)),
    ],
)
def test_prior_is_near_what_known_models_do(
    num_experts: int, top_k: int, hits: tuple[float, ...]
) -> None:
    curve = curve_of(of_type("mixtral", num_experts, top_k))
    assert curve.basis is HitsBasis.ASSUMED
    for share, measured in zip((0.125, 0.25, 0.5, 0.75), hits, strict=True):
        found = hits_at(curve, share)
        assert found == pytest.approx(measured, abs=0.13)
        assert 0.5 <= (1 - found) / (1 - measured) <= 2


@pytest.mark.parametrize(
    ("model_type", "num_experts", "top_k", "hits"),
    [
        # The engine's policy over recorded routing, means of all recorded topics.
        ("gpt_oss", 32, 4, (0.480, 0.713, 0.927, 0.988)),
        ("qwen3_moe", 128, 8, (0.653, 0.826, 0.962, 0.992)),
        ("deepseek_v2", 64, 6, (0.426, 0.612, 0.820, 0.936)),
    ],
)
def test_family_is_what_its_member_does(
    model_type: str, num_experts: int, top_k: int, hits: tuple[float, ...]
) -> None:
    curve = curve_of(of_type(model_type, num_experts, top_k))
    assert curve.basis is HitsBasis.FAMILY
    for share, measured in zip((0.125, 0.25, 0.5, 0.75), hits, strict=True):
        assert hits_at(curve, share) == pytest.approx(measured, abs=0.015)


def test_family_holds_for_a_member_of_another_shape() -> None:
    # A model of 512 experts, 10 for a token, found 67 % with 64 slots and 81 % with 128.
    curve = curve_of(of_type("qwen3_moe", 512, 10))
    assert curve.ratio(64 * 48) == pytest.approx(0.67, abs=0.03)
    assert curve.ratio(128 * 48) == pytest.approx(0.81, abs=0.03)


@pytest.mark.parametrize(
    ("num_experts", "top_k", "num_slots", "measured"),
    [
        (128, 8, 2, 0.18),
        (128, 8, 4, 0.30),
        (32, 4, 1, 0.142),
        (64, 6, 3, 0.196),
        (32, 24, 6, 0.227),
    ],
)
def test_curve_below_one_tokens_slots_is_near_what_the_default_does(
    num_experts: int, top_k: int, num_slots: int, measured: float
) -> None:
    found = curve_of(of_type("mixtral", num_experts, top_k)).ratio(num_slots * 48)
    assert found == pytest.approx(measured, abs=0.1)
    assert found <= num_slots / top_k


def test_curve_is_far_from_uniform() -> None:
    assert curve_of(MODEL).ratio(ALL // 2) > 0.85


def test_curve_ends_are_exact() -> None:
    curve = curve_of(MODEL)
    assert curve.ratio(0) == 0
    assert curve.ratio(ALL) == curve.ratio(2 * ALL) == 1
    assert curve_of(spec(num_layers=2, num_dense_layers=2)).ratio(0) == 1


def test_own_routing_counts_before_the_familys_with_what_the_policy_gains() -> None:
    # All needs were found among the 16 used last: half among the first 8, half at rank 15.
    own = curve_of(MODEL, counts(MODEL, {0: 500, 15: 500}))
    assert own.basis is HitsBasis.OWN
    assert own.ratio(8 * 48) == pytest.approx(1 - 0.5 * 0.93)
    assert own.ratio(16 * 48) == 1
    assert own.ratio(4 * 48) < own.ratio(8 * 48)


@pytest.mark.parametrize(
    "reuse",
    [
        counts(MODEL, {0: 10}, num_tokens=MIN_OWN_TOKENS - 1),
        counts(MODEL, {}),
        counts(spec(num_experts=64), {0: 10}),
    ],
)
def test_own_routing_that_says_nothing_of_the_model_does_not_count(reuse: ReuseCounts) -> None:
    assert curve_of(MODEL, reuse) == curve_of(MODEL)


@given(
    st.integers(1, 64),
    st.integers(1, 64),
    st.lists(st.integers(0, 9), min_size=64, max_size=64),
    st.integers(0, 200),
    st.integers(0, 200),
    st.booleans(),
)
def test_curve_more_slots_never_fewer_hits(
    num_experts: int, top_k: int, found: list[int], few: int, more: int, is_own: bool
) -> None:
    of = spec(num_experts=num_experts, top_k=min(top_k, num_experts), num_layers=3)
    reuse = ReuseCounts(tuple(found[:num_experts]), 1000) if is_own else None
    curve = curve_of(of, reuse)
    assert len(curve.hits) == num_experts + 1
    assert 0 <= curve.ratio(few) <= curve.ratio(few + more) <= 1
