"""Published models whose experts have matrices of several formats: sums, budgets, rates."""

import dataclasses
import math
import operator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.plan.cost_constants import CostConstants
from runtime.plan.planner import plan_curve, plan_model
from runtime.protocol.model import MixedExperts
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind, ReasonCode
from runtime.protocol.values import Budgets, Tier, WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import policy_bytes, staging_slots
from runtime.spec.mix import PartFormats, mixed_experts
from runtime.spec.tensors import layout_in
from tests.support.plan_cases import FOLDER, facts, machine, spec

MODEL = spec()
NUM_ALL = 48 * 128
Q4K, Q8 = WeightFormat.Q4K_G32, WeightFormat.Q8_G32
MIXED = mixed_experts(
    [{(Q4K, Q4K, Q8 if layer % 2 else Q4K): 128} for layer in range(48)],
    MODEL.hidden_size,
    MODEL.expert_width,
)
_HUGE = machine(total_gib=4096, available_gib=4000)


def _facts(stored_format: WeightFormat = Q4K, mixed: MixedExperts | None = MIXED) -> ModelFacts:
    """A file as Q4_K_M, or one in which all experts have a format."""
    known = facts(MODEL, stored_format=stored_format)
    report = msgspec.structs.replace(
        known.report, gguf_kinds=["Q4_K", "IQ4_XS"], mixed_experts=mixed, expert_bytes=2_900_000
    )
    return dataclasses.replace(known, report=report)


def _plan(ram_bytes: int | None = None, known: ModelFacts | None = None) -> PlacementPlan:
    (plan,) = plan_model(known or _facts(), _HUGE, Budgets(ram_bytes=ram_bytes))
    return plan


def test_mixed_experts_add_up_over_formats_and_records() -> None:
    matrix = MODEL.hidden_size * MODEL.expert_width
    large = layout_in((Q4K, Q4K, Q8), MODEL.hidden_size, MODEL.expert_width).record_bytes
    small = layout_in((Q4K, Q4K, Q4K), MODEL.hidden_size, MODEL.expert_width).record_bytes
    assert MIXED.records_bytes == NUM_ALL // 2 * (large + small)
    assert MIXED.slot_bytes == [small, large] * 24
    assert MIXED.bits == pytest.approx((5 * 4.5 + 8.5) / 6)
    assert sum(MIXED.format_bytes.values()) == NUM_ALL * 3 * matrix * MIXED.bits / 8


def test_plan_of_mixed_experts_has_exact_sums_where_all_stay_in_ram() -> None:
    plan = _plan()
    assert plan.ram_parts[MemoryPart.EXPERTS] == MIXED.records_bytes + policy_bytes(48, 128)
    assert plan.expert_format is Q4K
    assert (plan.needs_prepare, plan.store_folder) == (False, FOLDER)
    (ram,) = [share for share in plan.tiers if share.num_experts]
    assert (ram.tier, ram.bytes) == (Tier.RAM, MIXED.records_bytes)
    codes = {reason.code for reason in plan.reasons}
    assert {ReasonCode.NOTHING_WRITTEN, ReasonCode.BLOCKS_ARE_REPACKED} <= codes
    # What is less than in eight bits is so by the bytes.
    eight = _plan(known=_facts(Q8, None))
    assert plan.all_ram_bytes < 0.7 * eight.all_ram_bytes
    assert plan.forecast is not None
    assert eight.forecast is not None
    assert plan.forecast.decode_tokens_per_s > eight.forecast.decode_tokens_per_s


def test_plan_of_fewer_slots_gives_each_the_size_of_its_layer() -> None:
    budget = _plan().all_ram_bytes // 2
    plan = _plan(budget)
    num_slots = sum(plan.slots_per_layer)
    assert 0 < num_slots < NUM_ALL
    assert max(plan.slots_per_layer) - min(plan.slots_per_layer) <= 1
    small, large = MIXED.slot_bytes[:2]
    slots_bytes = sum(map(operator.mul, MIXED.slot_bytes, plan.slots_per_layer))
    taken_bytes = slots_bytes + staging_slots(MODEL) * (small + large) + policy_bytes(48, 128)
    assert plan.ram_parts[MemoryPart.EXPERTS] == taken_bytes
    # In slots of the largest record they would be fewer.
    whole_slots = (taken_bytes - policy_bytes(48, 128)) // large - staging_slots(MODEL)
    assert num_slots > 1.1 * whole_slots
    drive = next(share for share in plan.tiers if share.tier is Tier.DRIVE)
    assert drive.bytes == (NUM_ALL - num_slots) * 2_900_000


@given(part=st.floats(0, 1.1))
def test_plan_of_mixed_experts_is_never_above_the_budget(part: float) -> None:
    whole = _plan()
    budget = round(whole.min_ram_bytes + part * (whole.all_ram_bytes - whole.min_ram_bytes))
    plan = _plan(budget)
    assert plan.problem is None
    assert plan.ram_bytes == sum(plan.ram_parts.values()) <= budget


@pytest.mark.parametrize(("num_experts", "largest"), [(3, Q8), (4, WeightFormat.F16)])
def test_no_more_is_asked_for_than_all_experts_take_where_few_of_a_layer_are_much_larger(
    num_experts: int, largest: WeightFormat
) -> None:
    """Two slots of each layer in the size of the largest would take more than all experts do."""
    few = spec(
        num_layers=32, num_experts=num_experts, top_k=2, hidden_size=4096, expert_width=14336
    )
    numbers: dict[PartFormats, int] = {(Q4K,) * 3: num_experts - 1, (largest,) * 3: 1}
    mixed = mixed_experts([numbers] * 32, few.hidden_size, few.expert_width)
    known = dataclasses.replace(_facts(mixed=mixed), spec=few)
    whole = _plan(known=known)
    assert whole.problem is None
    assert sum(whole.slots_per_layer) == 32 * num_experts
    least = whole.min_ram_bytes
    assert least <= whole.all_ram_bytes
    for budget in (least, (least + whole.all_ram_bytes) // 2, whole.all_ram_bytes):
        plan = _plan(budget, known)
        assert plan.problem is None
        assert sum(plan.slots_per_layer) == 32 * num_experts
        assert plan.ram_bytes <= budget
    assert _plan(least - 1, known).problem is not None


def test_curve_of_mixed_experts_ends_where_all_of_them_fit() -> None:
    curve = plan_curve(_facts(), _HUGE, PlanKind.EXACT)
    assert curve is not None
    held = dict(zip(curve.ram_budgets, curve.num_in_ram, strict=True))
    whole = _plan().all_ram_bytes
    assert [budget for budget, number in held.items() if number == NUM_ALL] == [whole]


def test_rate_of_mixed_experts_lies_between_those_of_their_formats() -> None:
    """Bytes pass one after the other: half the rate for a third of them takes a third more."""
    mixed = msgspec.structs.replace(MIXED, format_bytes={Q4K: 200, Q8: 100})

    def seconds(mixed: MixedExperts | None, rate_of_q8: float) -> float:
        # The fourth powers of times add up.
        core = (
            20e9 / (rate_of_q8**-4 - 1) ** 0.25 / machine().num_physical_cores
            if rate_of_q8 < 1
            else math.inf
        )
        per_core = dict.fromkeys(WeightFormat, math.inf) | {Q8: core}
        costs = CostConstants(native_core_bytes_per_s=per_core)
        (plan,) = plan_model(_facts(mixed=mixed), _HUGE, Budgets(), costs=costs)
        assert plan.forecast is not None
        return 1 / plan.forecast.decode_tokens_per_s

    expert_s = 48 * 8 * MIXED.records_bytes / NUM_ALL / 20e9
    assert seconds(mixed, 0.5) - seconds(mixed, 1.0) == pytest.approx(expert_s / 3)
    assert seconds(None, 0.5) == seconds(None, 1.0)
