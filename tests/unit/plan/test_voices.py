"""What people met in other programs before a model was loaded, and what the planner says there."""

import pytest

from runtime.plan.planner import plan_model
from runtime.plan.recommendation import recommend
from runtime.protocol.plan import PlacementPlan, PlanKind, ReasonCode
from runtime.protocol.values import Budgets, Tier
from tests.support.golden_plans import plans_of
from tests.support.home_machines import HOMES
from tests.support.plan_cases import GIB, facts, machine, spec

MODEL = spec()
"""30 billion weights, of which 3 are used for a token."""


def exact_on(available_gib: float) -> PlacementPlan:
    here = machine(total_gib=1.25 * available_gib, available_gib=available_gib)
    return plan_model(facts(MODEL), here, Budgets())[0]


def test_v04_what_was_not_measured_is_assumed_and_said_and_nothing_is_refused() -> None:
    here = machine(ram_gb_per_s=None, drive_gb_per_s=None)
    plans = plan_model(facts(MODEL), here, Budgets())
    assert recommend(plans) is not None
    for plan in plans:
        assert plan.problem is None
        assert plan.forecast is not None
        assert plan.forecast.basis == "assumed"
        assert plan.forecast.decode_tokens_per_s_high > plan.forecast.decode_tokens_per_s_low > 0


def test_v17_size_goes_by_all_weights_and_speed_by_those_that_a_token_uses() -> None:
    there = machine(total_gib=128, available_gib=120)
    usual = plan_model(facts(MODEL), there, Budgets())[0]
    light = plan_model(facts(spec(top_k=4)), there, Budgets())[0]
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    assert usual.all_ram_bytes > experts
    assert light.all_ram_bytes == pytest.approx(usual.all_ram_bytes, rel=0.02)
    assert usual.forecast is not None
    assert light.forecast is not None
    assert light.forecast.decode_tokens_per_s > 1.2 * usual.forecast.decode_tokens_per_s


def test_v18_three_answers_whole_in_memory_from_the_drive_at_a_rate_and_not_at_all() -> None:
    whole, read, refused = exact_on(100), exact_on(12), exact_on(1)
    assert ReasonCode.FITS_IN_RAM in {reason.code for reason in whole.reasons}
    assert ReasonCode.READS_FROM_DRIVE in {reason.code for reason in read.reasons}
    assert (whole.problem, read.problem) == (None, None)
    assert whole.forecast is not None
    assert read.forecast is not None
    assert 0 < read.forecast.decode_tokens_per_s < whole.forecast.decode_tokens_per_s
    assert refused.problem is not None
    assert refused.problem.parameters["needed_bytes"] == refused.min_ram_bytes
    assert refused.min_ram_bytes < 12 * GIB < whole.ram_bytes


def test_v08_v18_models_above_vram_and_ram_run_with_a_rate_that_is_told() -> None:
    """GLM-4.5-Air as published takes 200 GB; this PC has 32 and a card of 12."""
    plans = plans_of(HOMES["desktop-32-gpu-12"])
    larger = [
        plan
        for each in plans.values()
        for plan in each
        if plan.kind is PlanKind.EXACT
        and plan.problem is None
        and any(share.tier is Tier.DRIVE and share.num_experts for share in plan.tiers)
    ]
    assert larger
    for plan in larger:
        assert plan.forecast is not None
        assert plan.forecast.decode_tokens_per_s > 0
        assert ReasonCode.READS_FROM_DRIVE in {reason.code for reason in plan.reasons}
