"""A kind of plan over a grid of budgets: each point is the plan under those budgets."""

import dataclasses

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import LarderError, report_of
from runtime.plan.budget_curve import NUM_RAM_BUDGETS, NUM_VRAM_BUDGETS
from runtime.plan.planner import plan_curve, plan_kinds
from runtime.protocol.errors import ErrorCode
from runtime.protocol.machine import DeviceReport
from runtime.protocol.plan import BudgetCurve, PlanKind
from runtime.protocol.values import Budgets, Tier
from runtime.spec.model import ModelSpec
from tests.support.plan_cases import facts, machine, spec
from tests.unit.plan.test_devices import CARD, card, pc, plan_with, shapes

MODEL = spec()


def curve_with(
    of: ModelSpec, *devices: DeviceReport, kind: PlanKind = PlanKind.EXACT
) -> BudgetCurve:
    curve = plan_curve(facts(of), pc(*devices), kind)
    assert curve is not None
    return curve


@settings(max_examples=25)
@given(
    of=shapes, free_gib=st.floats(0, 4), kind=st.sampled_from([PlanKind.EXACT, PlanKind.FOUR_BIT])
)
def test_curve_every_point_is_the_plan_under_those_budgets(
    of: ModelSpec, free_gib: float, kind: PlanKind
) -> None:
    device = card(free_gib=free_gib)
    curve = curve_with(of, device, kind=kind)
    width = len(curve.ram_budgets)
    for row, vram_bytes in enumerate(curve.vram_budgets[::8]):
        for column, ram_bytes in enumerate(curve.ram_budgets[::4]):
            at = row * 8 * width + column * 4
            budgets = Budgets(ram_bytes=ram_bytes, vram_bytes={CARD: vram_bytes})
            plans = plan_kinds(facts(of), pc(device), budgets)
            plan = next(each for each in plans if each.kind is kind)
            if plan.problem is not None:
                assert curve.context_tokens[at] == 0
                continue
            held = {share.tier: share.num_experts for share in plan.tiers}
            assert curve.num_in_vram[at] == held.get(Tier.VRAM, 0)
            assert curve.num_in_ram[at] == held[Tier.RAM]
            assert curve.context_tokens[at] == plan.context_tokens
            assert plan.forecast is not None
            assert curve.decode_tokens_per_s_low[at] == plan.forecast.decode_tokens_per_s_low
            assert curve.prompt_tokens_per_s_high[at] == plan.forecast.prompt_tokens_per_s_high
            assert curve.drive_bytes_per_token[at] == plan.forecast.drive_bytes_per_token


def test_curve_reaches_from_the_least_to_all_that_is_of_use() -> None:
    curve = curve_with(MODEL, card())
    whole = plan_with(MODEL, ram_bytes=1 << 62)
    alone = plan_with(MODEL, vram_bytes=0)
    assert len(curve.vram_budgets) == NUM_VRAM_BUDGETS
    assert len(curve.ram_budgets) == NUM_RAM_BUDGETS
    assert curve.vram_budgets[:2] == [0, whole.min_vram_bytes]
    assert curve.vram_budgets[-1] == whole.all_vram_bytes == curve.automatic_vram
    assert (curve.ram_budgets[0], curve.ram_budgets[-1]) == (
        whole.min_ram_bytes,
        alone.all_ram_bytes,
    )
    assert curve.automatic_ram[0] == plan_with(MODEL, vram_bytes=0).budgets.ram_bytes
    assert curve.automatic_ram[-1] == plan_with(MODEL).budgets.ram_bytes


def test_curve_without_a_card_or_with_one_of_no_use_varies_ram_only() -> None:
    alone = curve_with(MODEL)
    assert (alone.device, alone.vram_budgets, alone.automatic_vram) == ("cpu", [0], 0)
    small = curve_with(MODEL, card(free_gib=0.01))
    assert small.vram_budgets == [0]
    assert small.ram_budgets == alone.ram_budgets


def test_curve_where_little_ram_is_free_has_one_budget_that_cannot_be_loaded() -> None:
    curve = plan_curve(facts(MODEL), machine(total_gib=2, available_gib=0.3), PlanKind.EXACT)
    assert curve is not None
    assert len(curve.ram_budgets) == 1
    assert curve.context_tokens == [0]


def test_curve_of_a_kind_that_there_is_not_is_none() -> None:
    assert plan_curve(facts(MODEL), pc(), PlanKind.MIXED) is None


def test_curve_of_a_folder_that_cannot_run_is_none() -> None:
    known = facts(MODEL)
    for changes in (
        {"stored_format": None},
        {"problems": [report_of(LarderError(ErrorCode.CONFIG_INVALID))]},
    ):
        report = msgspec.structs.replace(known.report, **changes)
        broken = dataclasses.replace(known, report=report)
        assert plan_curve(broken, pc(), PlanKind.EXACT) is None
