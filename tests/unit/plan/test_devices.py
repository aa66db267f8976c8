"""Plans with a device: the dense part first, then experts; RAM below, the drive last."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.plan.memory import MIN_SLOTS_PER_LAYER
from runtime.plan.planner import plan_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.machine import DeviceReport, MachineReport, Measured
from runtime.protocol.plan import MemoryPart, PlacementPlan, Reason, ReasonCode
from runtime.protocol.values import Budgets, Tier
from runtime.spec.footprint import host_work_bytes
from runtime.spec.model import ModelSpec
from tests.support.plan_cases import GIB, facts, machine, spec

MODEL = spec()
SMALL = spec(num_layers=4, num_experts=16, top_k=4, hidden_size=256, expert_width=64)
CARD = "simulated:0"


def card(
    free_gib: float = 100, *, is_simulated: bool = True, is_used: bool = True, total_gib: float = 0
) -> DeviceReport:
    return DeviceReport(
        device=CARD if is_simulated else "cuda:0",
        name="Some Card",
        total_bytes=int((total_gib or free_gib) * GIB),
        free_bytes=int(free_gib * GIB),
        is_simulated=is_simulated,
        link_bytes_per_s=Measured(value=12e9, method="profile"),
        is_used=is_used,
    )


def pc(*devices: DeviceReport) -> MachineReport:
    return machine(total_gib=4096, available_gib=4000, devices=devices)


def plan_with(
    of: ModelSpec,
    *,
    ram_bytes: int | None = None,
    vram_bytes: int | None = None,
    device: DeviceReport | None = None,
    context_tokens: int = 0,
) -> PlacementPlan:
    device = device or card()
    vram = {} if vram_bytes is None else {device.device: vram_bytes}
    budgets = Budgets(ram_bytes=ram_bytes, vram_bytes=vram)
    return plan_model(facts(of), pc(device), budgets, context_tokens)[0]


def reasons(plan: PlacementPlan) -> dict[ReasonCode, Reason]:
    return {reason.code: reason for reason in plan.reasons}


def tier_counts(plan: PlacementPlan) -> dict[Tier, int]:
    return {share.tier: share.num_experts for share in plan.tiers}


shapes = st.builds(
    lambda layers, experts, top_k, hidden, tied: spec(
        hidden_size=hidden,
        num_layers=layers,
        num_experts=experts,
        top_k=min(top_k, experts),
        expert_width=96,
        max_context_tokens=2048,
        is_tied=tied,
    ),
    layers=st.integers(1, 8),
    experts=st.integers(1, 48),
    top_k=st.integers(1, 20),
    hidden=st.sampled_from([64, 576]),
    tied=st.booleans(),
)


@settings(max_examples=100)
@given(
    of=shapes,
    ram_part=st.floats(0, 1.2),
    vram_part=st.floats(0, 1.2),
    more=st.floats(0, 1),
)
def test_plan_device_any_budgets_are_kept_and_more_vram_is_never_worse(
    of: ModelSpec, ram_part: float, vram_part: float, more: float
) -> None:
    whole = plan_with(of)
    low, high = whole.min_vram_bytes, whole.all_vram_bytes
    few_bytes = int(low + vram_part * (high - low))
    many_bytes = int(few_bytes + more * (high - low))
    ram = int(whole.min_ram_bytes + ram_part * (whole.all_ram_bytes - whole.min_ram_bytes))
    one, two = (
        plan_with(of, ram_bytes=ram, vram_bytes=budget) for budget in (few_bytes, many_bytes)
    )
    for plan, vram in ((one, few_bytes), (two, many_bytes)):
        assert plan.problem is None
        assert plan.device == CARD
        assert plan.ram_bytes == sum(plan.ram_parts.values()) <= ram
        assert plan.vram_bytes == sum(plan.vram_parts.values()) <= vram
        assert plan.budgets == Budgets(ram_bytes=ram, vram_bytes={CARD: vram})
        least = min(of.top_k, MIN_SLOTS_PER_LAYER)
        assert all(least <= slots <= of.num_experts for slots in plan.slots_per_layer)
        assert all(0 <= slots <= of.num_experts for slots in plan.vram_slots_per_layer)
        assert len(plan.vram_slots_per_layer) == len(plan.slots_per_layer) == of.num_layers
        counts = tier_counts(plan)
        assert sum(counts.values()) == of.num_layers * of.num_experts
        assert counts[Tier.VRAM] == sum(plan.vram_slots_per_layer)
        assert counts[Tier.RAM] <= sum(plan.slots_per_layer)
        assert plan.ram_parts[MemoryPart.DENSE] == plan.ram_parts[MemoryPart.KV_CACHE] == 0
    pairs = zip(one.vram_slots_per_layer, two.vram_slots_per_layer, strict=True)
    assert all(before <= after for before, after in pairs)
    assert one.slots_per_layer == two.slots_per_layer
    assert one.context_tokens <= two.context_tokens
    assert one.forecast is not None
    assert two.forecast is not None
    assert one.forecast.decode_tokens_per_s_low <= two.forecast.decode_tokens_per_s_low * (
        1 + 1e-12
    )
    assert one.forecast.drive_bytes_per_token >= two.forecast.drive_bytes_per_token


@settings(max_examples=60)
@given(of=shapes, ram_part=st.floats(-0.1, 1.2), asked=st.sampled_from([0, 256]))
def test_plan_device_budget_zero_is_the_plan_without_a_device(
    of: ModelSpec, ram_part: float, asked: int
) -> None:
    alone = plan_model(facts(of), pc(), Budgets(), asked)[0]
    span = alone.all_ram_bytes - alone.min_ram_bytes
    ram = int(alone.min_ram_bytes + ram_part * span)
    known = facts(of)
    without = plan_model(known, pc(), Budgets(ram_bytes=ram), asked)
    unused = plan_model(known, pc(card()), Budgets(ram_bytes=ram, vram_bytes={CARD: 0}), asked)
    for plain, zero in zip(without, unused, strict=True):
        assert [item for item in zero.reasons if item.code is not ReasonCode.NO_GPU_USED] == (
            plain.reasons
        )
        assert (
            msgspec.structs.replace(
                zero,
                reasons=plain.reasons,
                budgets=plain.budgets,
                min_vram_bytes=0,
                all_vram_bytes=0,
                problem=plain.problem,
            )
            == plain
        )
        # What is said of a card that would help has a sentence of its own.
        assert (zero.problem is None) is (plain.problem is None)
        assert zero.budgets.vram_bytes == {CARD: 0}


@settings(max_examples=60)
@given(of=shapes)
def test_plan_device_smallest_and_largest_vram_budgets_are_exact(of: ModelSpec) -> None:
    whole = plan_with(of)
    least = plan_with(of, vram_bytes=whole.min_vram_bytes)
    assert least.device == CARD
    assert sum(least.vram_slots_per_layer) == 0
    assert least.vram_bytes == whole.min_vram_bytes
    below = plan_with(of, vram_bytes=whole.min_vram_bytes - 1)
    assert below.device == "cpu"
    assert below.vram_slots_per_layer == []
    assert below.vram_parts == {}
    assert reasons(below)[ReasonCode.VRAM_TOO_SMALL].parameters == {
        "device": "Some Card",
        "needed_bytes": whole.min_vram_bytes,
        "budget_bytes": whole.min_vram_bytes - 1,
    }
    most = plan_with(of, vram_bytes=whole.all_vram_bytes)
    assert tier_counts(most) == {Tier.VRAM: of.num_layers * of.num_experts, Tier.RAM: 0}
    assert most.vram_bytes == whole.all_vram_bytes
    assert ReasonCode.FITS_IN_VRAM in reasons(most)
    assert ReasonCode.FITS_IN_RAM not in reasons(most)


def test_plan_device_three_tiers_have_their_reasons_with_numbers() -> None:
    whole = plan_with(SMALL, context_tokens=512)
    each = whole.vram_parts[MemoryPart.EXPERTS] // 16
    # Two of sixteen experts of each layer on the device, five in RAM.
    vram = whole.all_vram_bytes - 14 * each
    ram = whole.min_ram_bytes + 3 * each
    plan = plan_with(SMALL, ram_bytes=ram, vram_bytes=vram, context_tokens=512)
    assert plan.vram_slots_per_layer == [2] * 4
    assert plan.slots_per_layer == [5] * 4
    assert tier_counts(plan) == {Tier.VRAM: 8, Tier.RAM: 20, Tier.DRIVE: 36}
    assert [share.device for share in plan.tiers[:2]] == [CARD, "cpu"]
    found = reasons(plan)
    assert found[ReasonCode.HOT_EXPERTS_IN_VRAM].parameters == {
        "device": "Some Card",
        "num_experts": 8,
        "num_all_experts": 64,
        "vram_bytes": plan.vram_bytes,
    }
    assert found[ReasonCode.VRAM_LIMITED_BY_BUDGET].parameters == {
        "device": "Some Card",
        "budget_bytes": vram,
        "needed_bytes": whole.all_vram_bytes,
    }
    assert found[ReasonCode.READS_FROM_DRIVE].parameters["num_experts"] == 36
    assert found[ReasonCode.RAM_LIMITED_BY_BUDGET].parameters["budget_bytes"] == ram
    assert ReasonCode.NO_GPU_USED not in found


def test_plan_device_ram_holds_only_what_the_processor_computes_with() -> None:
    plan = plan_with(MODEL)
    assert plan.ram_parts[MemoryPart.WORK] == host_work_bytes(MODEL, 256)
    assert plan.vram_parts[MemoryPart.DENSE] == facts(MODEL).dense_ram_bytes
    alone = plan_with(MODEL, vram_bytes=0)
    assert plan.min_ram_bytes < alone.min_ram_bytes
    assert plan.all_ram_bytes < alone.all_ram_bytes


def test_plan_device_that_holds_all_takes_little_ram_by_itself() -> None:
    plan = plan_with(MODEL)
    assert plan.vram_bytes == plan.all_vram_bytes
    assert plan.ram_bytes == plan.min_ram_bytes == plan.budgets.ram_bytes
    asked = plan_with(MODEL, ram_bytes=plan.all_ram_bytes)
    assert asked.slots_per_layer == [128] * 48
    assert tier_counts(asked) == {Tier.VRAM: 48 * 128, Tier.RAM: 0}


@pytest.mark.parametrize(("total_gib", "reserve_bytes"), [(4, GIB // 2), (24, 24 * GIB // 10)])
def test_plan_real_device_leaves_a_reserve(total_gib: int, reserve_bytes: int) -> None:
    real = card(total_gib - 1, is_simulated=False, total_gib=total_gib)
    plan = plan_with(MODEL, device=real)
    budget = (total_gib - 1) * GIB - reserve_bytes
    assert plan.budgets.vram_bytes == {"cuda:0": budget} or plan.device == "cpu"
    found = reasons(plan)
    limit = found.get(ReasonCode.VRAM_LIMITED_BY_FREE)
    if limit is None:
        assert found[ReasonCode.VRAM_TOO_SMALL].parameters["budget_bytes"] == budget
    else:
        assert limit.parameters["reserve_bytes"] == reserve_bytes
        assert limit.parameters["free_bytes"] == (total_gib - 1) * GIB


def test_plan_simulated_device_keeps_nothing_free() -> None:
    plan = plan_with(MODEL, device=card(8))
    assert plan.budgets.vram_bytes == {CARD: 8 * GIB}
    assert plan.vram_bytes <= 8 * GIB
    assert reasons(plan)[ReasonCode.VRAM_LIMITED_BY_FREE].parameters["reserve_bytes"] == 0


def test_plan_device_budget_above_what_is_free_is_cut() -> None:
    real = card(20, is_simulated=False, total_gib=24)
    plan = plan_with(MODEL, device=real, vram_bytes=30 * GIB)
    assert plan.budgets.vram_bytes == {"cuda:0": 20 * GIB - 24 * GIB // 10 // 4}
    assert ReasonCode.VRAM_LIMITED_BY_FREE in reasons(plan)


def test_plan_device_that_no_engine_drives_is_named_and_not_used() -> None:
    plan = plan_with(MODEL, device=card(is_used=False))
    assert plan.device == "cpu"
    assert plan.min_vram_bytes == plan.all_vram_bytes == 0
    assert reasons(plan)[ReasonCode.NO_GPU_USED].parameters == {"device": "Some Card"}


def test_plan_second_device_is_used_where_the_first_cannot_be() -> None:
    first = card(is_simulated=False, is_used=False)
    plan = plan_model(facts(MODEL), pc(first, card()), Budgets())[0]
    assert plan.device == CARD


def test_plan_absent_device_with_budget_zero_is_no_problem() -> None:
    budgets = Budgets(vram_bytes={"cuda:7": 0})
    assert plan_model(facts(SMALL), pc(), budgets)[0].problem is None
    asked = Budgets(vram_bytes={"cuda:7": 1})
    problem = plan_model(facts(SMALL), pc(), asked)[0].problem
    assert problem is not None
    assert problem.code is ErrorCode.VRAM_NOT_THERE


def test_plan_device_short_context_is_said_to_be_short_of_vram() -> None:
    whole = plan_with(MODEL)
    plan = plan_with(MODEL, vram_bytes=whole.min_vram_bytes + 64 * 1024**2)
    assert 512 <= plan.context_tokens < 8192
    assert {ReasonCode.CONTEXT_SHORTENED, ReasonCode.VRAM_LIMITED_BY_BUDGET} <= reasons(plan).keys()
    asked = plan_with(MODEL, vram_bytes=whole.min_vram_bytes + 64 * 1024**2, context_tokens=8192)
    assert asked.device == "cpu"
    assert ReasonCode.VRAM_TOO_SMALL in reasons(asked)


def test_plan_device_all_experts_fit_with_a_short_context_says_both() -> None:
    whole = plan_with(SMALL)
    plan = plan_with(SMALL, vram_bytes=whole.all_vram_bytes - 4096)
    assert sum(plan.vram_slots_per_layer) == 64
    assert {
        ReasonCode.FITS_IN_VRAM,
        ReasonCode.CONTEXT_SHORTENED,
        ReasonCode.VRAM_LIMITED_BY_BUDGET,
    } <= reasons(plan).keys()


def test_plan_device_and_ram_together_hold_all() -> None:
    whole = plan_with(SMALL, context_tokens=512)
    each = whole.vram_parts[MemoryPart.EXPERTS] // 16
    ram, vram = whole.min_ram_bytes + 10 * each, whole.all_vram_bytes - 12 * each
    plan = plan_with(SMALL, ram_bytes=ram, vram_bytes=vram, context_tokens=512)
    assert tier_counts(plan) == {Tier.VRAM: 16, Tier.RAM: 48}
    assert ReasonCode.FITS_IN_RAM in reasons(plan)
    assert plan.forecast is not None
    assert plan.forecast.drive_bytes_per_token == 0


def test_plan_real_device_is_forecast_faster_than_the_processor() -> None:
    real = card(60, is_simulated=False, total_gib=80)
    fast, slow = plan_with(MODEL, device=real), plan_with(MODEL, device=real, vram_bytes=0)
    assert fast.forecast is not None
    assert slow.forecast is not None
    assert fast.forecast.decode_tokens_per_s_low > 2 * slow.forecast.decode_tokens_per_s_low
    assert fast.forecast.prompt_tokens_per_s_low > 2 * slow.forecast.prompt_tokens_per_s_low
    assert fast.forecast.basis == "assumed"
    known = msgspec.structs.replace(real, read_bytes_per_s=Measured(value=9e11, method="NVML"))
    measured = plan_with(MODEL, device=known).forecast
    assert measured is not None
    assert measured.basis == "modelled"
    assert measured.decode_tokens_per_s_low > fast.forecast.decode_tokens_per_s_low


def test_plan_simulated_device_computes_as_fast_as_the_processor() -> None:
    held, alone = plan_with(MODEL).forecast, plan_with(MODEL, vram_bytes=0).forecast
    assert held is not None
    assert alone is not None
    assert held.basis == "modelled"
    assert 0.7 < held.decode_tokens_per_s_low / alone.decode_tokens_per_s_low < 1


def test_plan_model_without_experts_can_lie_on_a_device() -> None:
    dense = spec(num_layers=4, num_dense_layers=4, num_experts=0, top_k=0, expert_width=0)
    plan = plan_with(dense)
    assert plan.device == CARD
    assert plan.vram_slots_per_layer == []
    assert ReasonCode.FITS_IN_VRAM in reasons(plan)


def test_plan_card_given_up_beside_too_little_ram_says_how_much_of_it_is_needed() -> None:
    whole = plan_with(MODEL, ram_bytes=1 << 62)
    alone = plan_with(MODEL, vram_bytes=0)
    assert whole.min_ram_bytes < alone.min_ram_bytes
    refused = plan_with(MODEL, ram_bytes=alone.min_ram_bytes - 1, vram_bytes=0).problem
    assert refused is not None
    assert refused.code is ErrorCode.VRAM_BUDGET_TOO_SMALL
    assert refused.parameters == {
        "device": "Some Card",
        "budget_bytes": 0,
        "needed_bytes": whole.min_vram_bytes,
        "ram_bytes": alone.min_ram_bytes - 1,
    }
    needed = int(refused.parameters["needed_bytes"])
    assert plan_with(MODEL, ram_bytes=alone.min_ram_bytes - 1, vram_bytes=needed).problem is None


def test_plan_too_little_ram_also_beside_a_card_is_short_of_ram() -> None:
    least = plan_with(MODEL, ram_bytes=1 << 62).min_ram_bytes
    refused = plan_with(MODEL, ram_bytes=least - 1, vram_bytes=0).problem
    assert refused is not None
    assert refused.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    small = card(free_gib=0.01)
    refused = plan_with(MODEL, ram_bytes=least, vram_bytes=0, device=small).problem
    assert refused is not None
    assert refused.code is ErrorCode.RAM_BUDGET_TOO_SMALL


def test_plan_card_given_up_where_little_ram_is_free_is_asked_back() -> None:
    budgets = Budgets(vram_bytes={CARD: 0})
    crowded = machine(total_gib=16, available_gib=4, devices=(card(),))
    refused = plan_model(facts(MODEL), crowded, budgets)[0].problem
    assert refused is not None
    assert refused.code is ErrorCode.VRAM_BUDGET_TOO_SMALL


def test_h07_card_that_others_fill_is_planned_by_what_is_free_whatever_was_asked() -> None:
    full = card(1.2, is_simulated=False, total_gib=24)
    reserve = int(24 * GIB) // 10
    plan = plan_with(SMALL, device=full, vram_bytes=20 * GIB, ram_bytes=20 * GIB)
    assert plan.problem is None
    assert plan.vram_bytes <= full.free_bytes - reserve // 4
    # Nothing at all where the reserve alone is more than what is free; RAM does it then.
    tight = card(0.5, is_simulated=False, total_gib=24)
    without = plan_with(SMALL, device=tight, vram_bytes=20 * GIB, ram_bytes=20 * GIB)
    assert without.problem is None
    assert without.vram_bytes == 0
    assert without.device == "cpu"
    said = reasons(without)[ReasonCode.VRAM_TOO_SMALL].parameters
    assert int(said["budget_bytes"]) < int(said["needed_bytes"])
