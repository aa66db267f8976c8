"""Plans: inside the budget, with the slots and the reasons that the numbers give."""

import dataclasses

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runtime.plan.kinds import FEWEST_BITS
from runtime.plan.memory import BASE_BYTES, MIN_SLOTS_PER_LAYER
from runtime.plan.planner import plan_kinds, plan_model
from runtime.plan.recommendation import recommend
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.machine import DeviceReport
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind, ReasonCode
from runtime.protocol.values import Budgets, Tier, WeightFormat
from runtime.spec.attention import AttentionSpec
from runtime.spec.footprint import policy_bytes, staging_slots
from runtime.spec.model import ModelSpec
from runtime.spec.ram_slots import Records, ram_experts_bytes
from runtime.spec.rope import LongScaling
from runtime.spec.tensors import PAGE_BYTES, expert_layout
from tests.support.plan_cases import FOLDER, GIB, facts, machine, report, spec

DEVICE = DeviceReport(device="cuda:0", name="Some Card", total_bytes=8 * GIB, free_bytes=7 * GIB)
MODEL = spec()
HUGE = machine(total_gib=4096, available_gib=4000)
USUAL = (PlanKind.EXACT, PlanKind.EIGHT_BIT, PlanKind.FOUR_BIT)


def plans(
    of: ModelSpec = MODEL, ram_bytes: int | None = None, **options: object
) -> list[PlacementPlan]:
    """Those of the usual kinds, whether they would be offered or not."""
    found = plan_kinds(facts(of), HUGE, Budgets(ram_bytes=ram_bytes), **options)  # type: ignore[arg-type]
    return [plan for plan in found if plan.kind in USUAL]


def codes(plan: PlacementPlan) -> set[ReasonCode]:
    return {reason.code for reason in plan.reasons}


def drive_experts(plan: PlacementPlan) -> int:
    return sum(share.num_experts for share in plan.tiers if share.tier is Tier.DRIVE)


def problem_of(plan: PlacementPlan) -> ErrorReport:
    assert plan.problem is not None
    return plan.problem


shapes = st.builds(
    lambda layers, dense, experts, top_k, width, hidden, context, tied: spec(
        hidden_size=hidden,
        num_layers=layers,
        num_dense_layers=min(dense, layers - 1),
        num_experts=experts,
        top_k=min(top_k, experts),
        expert_width=width,
        max_context_tokens=context,
        is_tied=tied,
    ),
    layers=st.integers(1, 12),
    dense=st.integers(0, 3),
    experts=st.integers(1, 64),
    top_k=st.integers(1, 10),
    width=st.sampled_from([32, 96, 512]),
    hidden=st.sampled_from([64, 576, 1024]),
    context=st.sampled_from([256, 700, 2048, 131072]),
    tied=st.booleans(),
)


@settings(max_examples=150)
@given(of=shapes, part=st.floats(0, 1.3), more=st.floats(0, 1), asked=st.sampled_from([0, 0, 256]))
def test_plan_any_budget_keeps_inside_it_and_more_is_never_worse(
    of: ModelSpec, part: float, more: float, asked: int
) -> None:
    offered = plans(of)
    index = {plan.kind: at for at, plan in enumerate(offered)}
    for exact in offered:
        low, high = exact.min_ram_bytes, exact.all_ram_bytes
        small = int(low + part * (high - low))
        large = int(small + more * (high - low))
        one = plans(of, small, context_tokens=asked)[index[exact.kind]]
        two = plans(of, large, context_tokens=asked)[index[exact.kind]]
        assume(one.problem is None)
        for plan in (one, two):
            assert plan.budgets.ram_bytes is not None
            assert plan.ram_bytes == sum(plan.ram_parts.values()) <= plan.budgets.ram_bytes
            assert len(plan.slots_per_layer) == len(of.moe_layers)
            least = min(of.top_k, MIN_SLOTS_PER_LAYER)
            assert all(least <= slots <= of.num_experts for slots in plan.slots_per_layer)
            assert plan.slots_per_layer == sorted(plan.slots_per_layer, reverse=True)
            held = sum(share.num_experts for share in plan.tiers)
            assert held == len(of.moe_layers) * of.num_experts
            assert min(512, of.max_context_tokens, asked or 512) <= plan.context_tokens
            assert plan.context_tokens <= of.max_context_tokens
        assert all(
            few <= many for few, many in zip(one.slots_per_layer, two.slots_per_layer, strict=True)
        )
        assert one.context_tokens <= two.context_tokens
        assert one.forecast is not None
        assert two.forecast is not None
        for name in (
            "decode_tokens_per_s_low",
            "decode_tokens_per_s_high",
            "prompt_tokens_per_s_low",
            "prompt_tokens_per_s_high",
        ):
            assert getattr(one.forecast, name) <= getattr(two.forecast, name) * (1 + 1e-12)
        assert one.forecast.drive_bytes_per_token >= two.forecast.drive_bytes_per_token


@settings(max_examples=100)
@given(of=shapes, asked=st.sampled_from([0, 256]))
def test_plan_smallest_budget_loads_and_largest_needs_no_drive(of: ModelSpec, asked: int) -> None:
    for at, plan in enumerate(plans(of, context_tokens=asked)):
        smallest = plans(of, plan.min_ram_bytes, context_tokens=asked)[at]
        assert smallest.problem is None
        below = problem_of(plans(of, plan.min_ram_bytes - 1, context_tokens=asked)[at])
        assert below.code is ErrorCode.RAM_BUDGET_TOO_SMALL
        assert below.parameters == {
            "budget_bytes": plan.min_ram_bytes - 1,
            "needed_bytes": plan.min_ram_bytes,
        }
        largest = plans(of, plan.all_ram_bytes, context_tokens=asked)[at]
        assert drive_experts(largest) == 0
        assert largest.ram_bytes == plan.all_ram_bytes
        assert ReasonCode.FITS_IN_RAM in codes(largest)
        assert ReasonCode.CONTEXT_SHORTENED not in codes(largest)


def test_plan_kinds_have_their_formats_and_sizes() -> None:
    exact, eight, four = plans()
    assert [plan.kind for plan in (exact, eight, four)] == [
        PlanKind.EXACT,
        PlanKind.EIGHT_BIT,
        PlanKind.FOUR_BIT,
    ]
    assert exact.is_exact
    assert not exact.needs_prepare
    assert exact.bytes_to_write == 0
    assert exact.store_folder == FOLDER
    assert exact.expert_format is exact.dense_format is WeightFormat.BF16
    assert {ReasonCode.NOTHING_WRITTEN, ReasonCode.ANSWERS_AS_PUBLISHED} <= codes(exact)
    for plan, format_ in ((eight, WeightFormat.Q8_G32), (four, WeightFormat.Q4A_G32)):
        record_bytes = expert_layout(format_, 2048, 768).record_bytes
        assert plan.expert_format is format_
        assert plan.dense_format is WeightFormat.BF16
        assert not plan.is_exact
        assert plan.needs_prepare
        assert plan.store_folder == ""
        assert plan.bytes_to_write == 48 * 128 * record_bytes
        assert plan.ram_parts[MemoryPart.EXPERTS] == (
            48 * 128 * record_bytes + policy_bytes(48, 128)
        )
        assert ReasonCode.WRITES_ONCE in codes(plan)
    assert ReasonCode.ANSWERS_NEARLY_AS_PUBLISHED in codes(eight)
    assert ReasonCode.ANSWERS_DIFFER_LITTLE in codes(four)
    assert exact.ram_parts[MemoryPart.DENSE] == facts(MODEL).dense_ram_bytes
    assert exact.ram_parts[MemoryPart.KV_CACHE] == 8192 * report(MODEL).kv_bytes_per_token
    assert all(plan.base_bytes == BASE_BYTES for plan in (exact, eight, four))


def test_plan_prepared_copy_is_used() -> None:
    known = facts(MODEL, prepared=(WeightFormat.Q4A_G32,))
    _, eight, four = plan_model(known, HUGE, Budgets())
    assert eight.needs_prepare
    assert not four.needs_prepare
    assert four.bytes_to_write == 0
    assert four.store_folder == "/prepared/q4a_g32"
    assert ReasonCode.ALREADY_PREPARED in codes(four)


@pytest.mark.parametrize("stored_format", [WeightFormat.BF16, WeightFormat.Q8_G32])
def test_plan_kinds_of_other_bits_are_offered_where_such_a_copy_was_written(
    stored_format: WeightFormat,
) -> None:
    written = (WeightFormat.Q2_G16, WeightFormat.Q6_G32, WeightFormat.Q3_G16)
    known = facts(MODEL, stored_format=stored_format, prepared=written)
    offered = plan_model(known, HUGE, Budgets())
    more = [PlanKind.EIGHT_BIT] if stored_format is WeightFormat.BF16 else []
    kinds = [PlanKind.SIX_BIT, PlanKind.FOUR_BIT, PlanKind.THREE_BIT, PlanKind.TWO_BIT]
    assert [plan.kind for plan in offered] == [PlanKind.EXACT, *more, *kinds]
    for plan in offered[-4:]:
        record_bytes = expert_layout(plan.expert_format, 2048, 768).record_bytes
        assert plan.needs_prepare is (plan.kind is PlanKind.FOUR_BIT)
        assert plan.all_ram_bytes - offered[-1].all_ram_bytes == 48 * 128 * (
            record_bytes - expert_layout(WeightFormat.Q2_G16, 2048, 768).record_bytes
        )
    said = [reason for plan in offered[-4:] for reason in plan.reasons]
    bits = [reason.parameters["bits"] for reason in said if "bits" in reason.parameters]
    assert bits == [6, 4, 3, 2]


def test_plan_default_budget_leaves_the_system_its_part() -> None:
    exact = plan_model(facts(MODEL), machine(), Budgets())[0]
    assert exact.budgets.ram_bytes == 24 * GIB - BASE_BYTES - 32 * GIB // 10
    assert {ReasonCode.READS_FROM_DRIVE, ReasonCode.RAM_LIMITED_BY_FREE} <= codes(exact)
    assert exact.tiers[0].tier is Tier.RAM
    assert exact.tiers[1].tier is Tier.DRIVE
    assert exact.tiers[1].bytes == exact.tiers[1].num_experts * report(MODEL).expert_bytes


def test_plan_default_budget_stops_at_what_is_needed() -> None:
    exact = plans()[0]
    assert exact.budgets.ram_bytes == exact.all_ram_bytes == exact.ram_bytes


def test_plan_control_group_limits() -> None:
    limited = machine(limit_gib=12, available_gib=11)
    exact = plan_model(facts(MODEL), limited, Budgets())[0]
    assert exact.budgets.ram_bytes == 11 * GIB - BASE_BYTES - 12 * GIB // 20
    assert ReasonCode.RAM_LIMITED_BY_CONTROL_GROUP in codes(exact)


def test_plan_budget_above_what_is_free_is_cut() -> None:
    exact = plan_model(facts(MODEL), machine(), Budgets(ram_bytes=40 * GIB))[0]
    assert exact.problem is None
    assert exact.budgets.ram_bytes == 24 * GIB - BASE_BYTES - 32 * GIB // 10 // 4
    assert ReasonCode.RAM_LIMITED_BY_FREE in codes(exact)


def test_plan_budget_of_the_person_is_the_reason() -> None:
    exact = plan_model(facts(MODEL), machine(), Budgets(ram_bytes=9 * GIB))[0]
    assert exact.budgets.ram_bytes == 9 * GIB
    assert ReasonCode.RAM_LIMITED_BY_BUDGET in codes(exact)


@pytest.mark.parametrize("given_bytes", [None, 30 * GIB])
def test_plan_too_little_free_is_a_problem(given_bytes: int | None) -> None:
    full = machine(available_gib=1)
    for plan in plan_model(facts(MODEL), full, Budgets(ram_bytes=given_bytes)):
        problem = problem_of(plan)
        assert problem.code is ErrorCode.RAM_NOT_FREE
        assert problem.severity is Severity.MODEL
        assert problem.parameters["needed_bytes"] == plan.min_ram_bytes
        assert plan.forecast is None
        assert plan.slots_per_layer == [MIN_SLOTS_PER_LAYER] * 48
        assert plan.ram_bytes == plan.min_ram_bytes
    assert recommend(plan_model(facts(MODEL), full, Budgets())) is None


def test_plan_negative_budget_is_too_small() -> None:
    assert problem_of(plans(ram_bytes=-5)[0]).code is ErrorCode.RAM_BUDGET_TOO_SMALL


def test_plan_small_memory_shortens_the_context() -> None:
    exact = plans()[0]
    plan = plans(ram_bytes=exact.min_ram_bytes + 200 * 1024**2)[0]
    assert 512 <= plan.context_tokens < 8192
    assert plan.context_tokens % 64 == 0
    assert ReasonCode.RAM_LIMITED_BY_BUDGET in codes(plan)
    (reason,) = [item for item in plan.reasons if item.code is ReasonCode.CONTEXT_SHORTENED]
    assert reason.parameters == {
        "context_tokens": plan.context_tokens,
        "wanted_tokens": 8192,
    }


def test_plan_all_experts_fit_with_a_short_context_says_both() -> None:
    small = spec(num_layers=2, num_experts=8, top_k=2, expert_width=32)
    plan = plans(small, ram_bytes=plans(small)[0].all_ram_bytes - 1)[0]
    assert drive_experts(plan) == 0
    assert {ReasonCode.FITS_IN_RAM, ReasonCode.CONTEXT_SHORTENED} <= codes(plan)
    assert ReasonCode.RAM_LIMITED_BY_BUDGET in codes(plan)


def test_plan_context_asked_for_is_kept() -> None:
    exact = plans(context_tokens=20000)[0]
    assert exact.context_tokens == 20000
    least = plans(ram_bytes=exact.min_ram_bytes, context_tokens=20000)[0]
    assert least.context_tokens == 20000
    assert least.problem is None


def test_plan_context_above_the_model_is_a_problem() -> None:
    problem = problem_of(plans(context_tokens=40961)[2])
    assert problem.code is ErrorCode.CONTEXT_TOO_LONG
    assert problem.parameters == {"asked_tokens": 40961, "max_tokens": 40960}


def test_plan_device_that_is_missing_is_a_problem() -> None:
    budgets = Budgets(vram_bytes={"cuda:0": GIB, "cuda:1": GIB})
    with_one = machine(devices=(DEVICE,))
    problem = problem_of(plan_model(facts(MODEL), with_one, budgets)[0])
    assert problem.code is ErrorCode.VRAM_NOT_THERE
    assert problem.parameters == {"device": "cuda:1"}


def test_plan_machine_with_card_and_slow_kernels_says_so() -> None:
    here = machine(devices=(DEVICE,), kernels="reference")
    exact = plan_model(facts(MODEL), here, Budgets())[0]
    assert {ReasonCode.NO_GPU_USED, ReasonCode.SLOW_KERNELS} <= codes(exact)
    native = plan_model(facts(MODEL), machine(), Budgets())[0]
    assert not {ReasonCode.NO_GPU_USED, ReasonCode.SLOW_KERNELS} & codes(native)


def test_plan_model_without_experts_has_one_plan() -> None:
    dense = spec(num_layers=4, num_dense_layers=4, num_experts=0, top_k=0, expert_width=0)
    (plan,) = plans(dense)
    assert plan.kind is PlanKind.EXACT
    assert plan.slots_per_layer == []
    assert plan.problem is None
    assert plan.ram_parts[MemoryPart.EXPERTS] == 0
    assert drive_experts(plan) == 0


def test_plan_packed_model_is_written_once_and_answers_as_published() -> None:
    (plan,) = plan_model(facts(MODEL, stored_format=WeightFormat.MXFP4), HUGE, Budgets())
    record_bytes = expert_layout(WeightFormat.MXFP4, 2048, 768).record_bytes
    assert (plan.kind, plan.is_exact, plan.needs_prepare) == (PlanKind.EXACT, True, True)
    assert plan.bytes_to_write == 48 * 128 * record_bytes
    assert plan.store_folder == ""
    assert (plan.expert_format, plan.dense_format) == (WeightFormat.MXFP4, WeightFormat.BF16)
    assert {ReasonCode.WRITES_ONCE, ReasonCode.ANSWERS_AS_PUBLISHED} <= codes(plan)


def test_plan_packed_model_with_a_copy_uses_it() -> None:
    known = facts(MODEL, stored_format=WeightFormat.MXFP4, prepared=(WeightFormat.MXFP4,))
    (plan,) = plan_model(known, HUGE, Budgets())
    assert (plan.needs_prepare, plan.bytes_to_write) == (False, 0)
    assert plan.store_folder == "/prepared/mxfp4"
    assert {ReasonCode.ALREADY_PREPARED, ReasonCode.ANSWERS_AS_PUBLISHED} <= codes(plan)


def test_plan_of_widened_weights_says_so() -> None:
    known = facts(MODEL)
    widened = msgspec.structs.replace(known.report, published_bits=8)
    plan = plan_model(dataclasses.replace(known, report=widened), HUGE, Budgets())[0]
    assert {ReasonCode.NOTHING_WRITTEN, ReasonCode.WEIGHTS_ARE_WIDENED} <= codes(plan)
    assert ReasonCode.ANSWERS_AS_PUBLISHED not in codes(plan)
    reason = next(each for each in plan.reasons if each.code is ReasonCode.WEIGHTS_ARE_WIDENED)
    assert reason.parameters == {"bits": 8}


@pytest.mark.parametrize(
    ("kinds", "home", "code"),
    [
        (["Q8_0", "F16"], WeightFormat.Q8_G32, ReasonCode.ANSWERS_AS_PUBLISHED),
        (["Q4_K", "F32"], WeightFormat.Q4K_G32, ReasonCode.ANSWERS_AS_PUBLISHED),
        (["Q4_K", "Q8_0"], WeightFormat.Q4K_G32, ReasonCode.ANSWERS_AS_PUBLISHED),
        (["Q4_K", "Q6_K"], WeightFormat.Q4K_G32, ReasonCode.ANSWERS_AS_PUBLISHED),
        (["Q5_K", "Q6_K"], WeightFormat.Q5K_G32, ReasonCode.ANSWERS_AS_PUBLISHED),
        (["Q2_K", "Q3_K"], WeightFormat.Q2K_G16, ReasonCode.ANSWERS_AS_PUBLISHED),
        (["Q4_K", "IQ4_XS"], WeightFormat.Q8_G32, ReasonCode.BLOCKS_ARE_REPACKED),
    ],
)
def test_plan_gguf_model_is_used_in_place(
    kinds: list[str], home: WeightFormat, code: ReasonCode
) -> None:
    known = facts(MODEL, stored_format=home)
    report = msgspec.structs.replace(known.report, gguf_kinds=kinds)
    (plan,) = plan_model(dataclasses.replace(known, report=report), HUGE, Budgets())
    assert (plan.needs_prepare, plan.store_folder) == (False, known.report.folder)
    assert {ReasonCode.NOTHING_WRITTEN, code} <= codes(plan)


def test_plan_model_with_problems_has_none() -> None:
    broken = facts(MODEL, stored_format=None)
    assert plan_model(broken, HUGE, Budgets()) == []


def test_recommend_all_fit_takes_the_published_weights() -> None:
    assert recommend(plans()) is PlanKind.EXACT


def test_recommend_some_fit_takes_the_most_exact_of_them() -> None:
    sized = {plan.kind: plan for plan in plans()}
    eight = plans(ram_bytes=sized[PlanKind.EIGHT_BIT].all_ram_bytes)
    assert recommend(eight) is PlanKind.EIGHT_BIT
    four = plans(ram_bytes=sized[PlanKind.FOUR_BIT].all_ram_bytes)
    assert recommend(four) is PlanKind.FOUR_BIT


def test_recommend_none_fits_takes_the_fastest() -> None:
    sized = {plan.kind: plan for plan in plans()}
    ram_bytes = sized[PlanKind.FOUR_BIT].all_ram_bytes - PAGE_BYTES
    found = plan_model(facts(MODEL), HUGE, Budgets(ram_bytes=ram_bytes))
    # Fewer bits that nobody wrote are offered, and not recommended.
    usual = [plan for plan in found if plan.kind not in FEWEST_BITS]
    speeds = {plan.kind: plan.forecast.decode_tokens_per_s_low for plan in usual if plan.forecast}
    assert recommend(found) is max(speeds, key=lambda kind: speeds[kind])


def test_recommend_only_some_can_be_loaded() -> None:
    sized = {plan.kind: plan for plan in plans()}
    found = plans(ram_bytes=sized[PlanKind.FOUR_BIT].min_ram_bytes)
    assert found[0].problem is not None
    assert recommend(found) is PlanKind.FOUR_BIT


@given(of=shapes, share=st.floats(0, 1))
def test_plan_experts_take_slots_staging_and_what_the_policy_keeps(
    of: ModelSpec, share: float
) -> None:
    exact = plans(of)[0]
    ram_bytes = int(exact.min_ram_bytes + share * (exact.all_ram_bytes - exact.min_ram_bytes))
    plan = plans(of, ram_bytes)[0]
    record_bytes = expert_layout(WeightFormat.BF16, of.hidden_size, of.expert_width).record_bytes
    num_slots, num_layers = sum(plan.slots_per_layer), len(of.moe_layers)

    taken = plan.ram_parts[MemoryPart.EXPERTS] - policy_bytes(num_layers, of.num_experts)

    num_absent = num_layers * of.num_experts - num_slots
    assert taken == record_bytes * (num_slots + (staging_slots(of) if num_absent else 0))
    assert not num_absent or num_absent >= staging_slots(of)
    records = Records.alike(record_bytes, of)
    whole_bytes = ram_experts_bytes(of, records, plan.slots_per_layer)
    assert whole_bytes == plan.ram_parts[MemoryPart.EXPERTS]


@pytest.mark.parametrize(
    ("stored_format", "others"),
    [
        (
            WeightFormat.Q8_G32,
            {
                PlanKind.SIX_BIT: WeightFormat.Q6_G32,
                PlanKind.FOUR_BIT: WeightFormat.Q4A_G32,
            },
        ),
        (WeightFormat.Q4_G32, {}),
        (WeightFormat.MXFP4, {}),
    ],
)
def test_plan_of_experts_published_in_few_bits_copies_them_or_takes_fewer(
    stored_format: WeightFormat, others: dict[PlanKind, WeightFormat]
) -> None:
    exact, *rest = plan_model(facts(MODEL, stored_format=stored_format), HUGE, Budgets())
    assert (exact.kind, exact.is_exact, exact.needs_prepare) == (PlanKind.EXACT, True, True)
    assert exact.expert_format is stored_format
    assert exact.bytes_to_write > 0
    assert {ReasonCode.WRITES_ONCE, ReasonCode.ANSWERS_AS_PUBLISHED} <= codes(exact)
    assert {plan.kind: plan.expert_format for plan in rest} == others
    for plan in rest:
        assert not plan.is_exact
        assert plan.bytes_to_write < exact.bytes_to_write


@pytest.mark.parametrize(
    ("original_tokens", "asked", "expected"),
    [(4096, 0, 4096), (4096, 6000, 6000), (4096, 1000, 1000), (16384, 0, 8192)],
)
def test_plan_takes_no_longer_context_than_the_original_unless_asked(
    original_tokens: int, asked: int, expected: int
) -> None:
    """Beyond it LongRoPE turns all positions otherwise, those of short chats too."""
    scaling = LongScaling((1.0,) * 32, (2.0,) * 32, original_tokens, 1.0, 1.0)
    attention = MODEL.attention[0]
    assert isinstance(attention, AttentionSpec)
    assert attention.rope is not None
    long = dataclasses.replace(attention, rope=dataclasses.replace(attention.rope, scaling=scaling))
    of = dataclasses.replace(MODEL, attention=(*MODEL.attention[1:], long))
    assert {plan.context_tokens for plan in plans(of, context_tokens=asked)} == {expected}
