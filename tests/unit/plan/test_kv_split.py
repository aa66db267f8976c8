"""Keys and values or experts on a card: of all ways to share it, none saves a token more time."""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.plan.hits import curve_of
from runtime.plan.kv_split import (
    LEAST_GAIN,
    USED_PART,
    Contest,
    Worth,
    kv_seconds,
    layers_in_ram,
    saved_s,
    seen_tokens,
)
from runtime.plan.planner import plan_curve, plan_model
from runtime.protocol.machine import DeviceReport, Measured
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind, ReasonCode
from runtime.protocol.sentences import reason_sentence
from runtime.protocol.values import Budgets, Tier
from runtime.spec.attention import AttentionSpec
from runtime.spec.footprint import kv_layer_bytes
from runtime.spec.model import ModelSpec
from tests.support.plan_cases import GIB, facts, machine, spec

CARD = "cuda:0"
TOKENS = 8192


def windowed(of: ModelSpec, windows: tuple[int, ...]) -> ModelSpec:
    """The same model, whose layers see so far back."""
    attention = tuple(
        dataclasses.replace(each, window=window)
        for each, window in zip(of.attention, windows, strict=True)
        if isinstance(each, AttentionSpec)
    )
    return dataclasses.replace(of, attention=attention)


ALTERNATING = windowed(
    spec(num_layers=24, num_experts=32, top_k=4, hidden_size=2880, expert_width=2880),
    (128, 0) * 12,
)
"""The shape of gpt-oss-20b."""


@st.composite
def contests(draw: st.DrawFn) -> tuple[Worth, Contest]:
    num_layers = draw(st.integers(1, 6))
    num_experts = draw(st.integers(2, 12))
    of = spec(
        hidden_size=draw(st.sampled_from([64, 1024])),
        num_layers=num_layers,
        num_experts=num_experts,
        top_k=draw(st.integers(1, num_experts)),
        expert_width=96,
    )
    windows = st.sampled_from([0, 64, 512])
    of = windowed(of, tuple(draw(windows) for _ in range(num_layers)))
    tokens = draw(st.sampled_from([192, 1000, 4096]))
    whole_bytes = sum(kv_layer_bytes(of, tokens))
    record_bytes = draw(st.integers(1, max(1, whole_bytes)))
    num_slots = num_layers * num_experts
    seconds = st.floats(0, 1e-3)
    worth = Worth(
        hits=curve_of(of),
        num_lookups=num_layers * of.top_k,
        expert_s=draw(seconds),
        kv_byte_s=draw(st.floats(0, 1e-10)),
        kv_layer_s=draw(seconds),
    )
    contest = Contest(
        spec=of,
        context_tokens=tokens,
        room_bytes=draw(st.integers(0, whole_bytes + num_slots * record_bytes)),
        record_bytes=record_bytes,
        num_slots=num_slots,
        spare_bytes=draw(st.integers(-1, whole_bytes)),
    )
    return worth, contest


@settings(max_examples=200)
@given(drawn=contests())
def test_split_of_all_sets_of_layers_none_saves_more(drawn: tuple[Worth, Contest]) -> None:
    worth, contest = drawn
    sizes = kv_layer_bytes(contest.spec, contest.context_tokens)
    layers = range(len(sizes))
    every = itertools.chain.from_iterable(
        itertools.combinations(layers, number) for number in range(len(sizes) + 1)
    )
    kept_s = saved_s(worth, contest, ())

    def is_allowed(moved: tuple[int, ...]) -> bool:
        moved_bytes = sum(sizes[layer] for layer in moved)
        is_held = sum(sizes) - moved_bytes <= contest.room_bytes
        return moved_bytes <= contest.spare_bytes and is_held

    allowed = [each for each in every if is_allowed(each)]
    best_s = max((saved_s(worth, contest, each) for each in allowed), default=kept_s)
    has_room = sum(sizes) <= contest.room_bytes

    found = layers_in_ram(worth, contest)

    if found:
        assert is_allowed(found)
        assert saved_s(worth, contest, found) == pytest.approx(best_s)
        assert not has_room or best_s > kept_s * (1 + LEAST_GAIN) * (1 - 1e-9)
    elif not has_room:
        assert allowed == []
    else:
        is_whole = contest.room_bytes - sum(sizes) >= contest.num_slots * contest.record_bytes
        assert is_whole or best_s <= kept_s * (1 + LEAST_GAIN) * (1 + 1e-9)


def test_split_a_layer_that_sees_little_leaves_before_one_that_sees_all() -> None:
    worth = Worth(
        hits=curve_of(ALTERNATING),
        num_lookups=96,
        expert_s=1e-3,
        kv_byte_s=5e-10,
        kv_layer_s=2e-5,
    )
    windowed_s, whole_s = kv_seconds(worth, ALTERNATING, TOKENS)[:2]
    assert whole_s - 2e-5 == pytest.approx((windowed_s - 2e-5) * (TOKENS // USED_PART / 128))
    assert seen_tokens(ALTERNATING.attention[0], 40) == 40
    contest = Contest(
        spec=ALTERNATING,
        context_tokens=TOKENS,
        room_bytes=3 * GIB // 2,
        record_bytes=13_219_200,
        num_slots=24 * 32,
        spare_bytes=8 * GIB,
    )

    found = layers_in_ram(worth, contest)

    assert found
    assert all(layer % 2 == 0 for layer in found)
    assert layers_in_ram(worth, dataclasses.replace(contest, spare_bytes=0)) == ()


def real_card(free_gib: float) -> DeviceReport:
    return DeviceReport(
        device=CARD,
        name="Some Card",
        total_bytes=int(free_gib * GIB),
        free_bytes=int(free_gib * GIB),
        link_bytes_per_s=Measured(value=12e9, method="measured"),
        read_bytes_per_s=Measured(value=400e9, method="measured"),
        is_used=True,
    )


def plans_with(
    of: ModelSpec, free_gib: float, budgets: Budgets, wanted: PlanKind | None = None
) -> list[PlacementPlan]:
    pc = machine(total_gib=64, available_gib=60, devices=(real_card(free_gib),))
    return plan_model(facts(of), pc, budgets, wanted=wanted)


def test_plan_gives_the_room_of_windows_to_experts_and_says_so() -> None:
    plan = plans_with(ALTERNATING, 6, Budgets())[-1]
    assert plan.ram_kv_layers
    sizes = kv_layer_bytes(ALTERNATING, plan.context_tokens)
    moved_bytes = sum(sizes[layer] for layer in plan.ram_kv_layers)

    assert plan.ram_parts[MemoryPart.KV_CACHE] == moved_bytes
    assert plan.vram_parts[MemoryPart.KV_CACHE] == sum(sizes) - moved_bytes
    assert plan.ram_bytes == sum(plan.ram_parts.values()) <= (plan.budgets.ram_bytes or 0)
    assert plan.vram_bytes == sum(plan.vram_parts.values()) <= plan.budgets.vram_bytes[CARD]
    reason = next(each for each in plan.reasons if each.code is ReasonCode.KV_IN_RAM)
    assert reason.parameters == {
        "device": "Some Card",
        "num_layers": len(plan.ram_kv_layers),
        "num_all_layers": 24,
        "kv_bytes": moved_bytes,
    }
    assert "12 of 24 layers" in reason_sentence(reason)
    # With RAM for the experts alone, none of it goes to keys and values.
    poor = plans_with(ALTERNATING, 6, Budgets(ram_bytes=plan.all_ram_bytes))[-1]
    assert poor.ram_kv_layers == []
    assert sum(poor.vram_slots_per_layer) < sum(plan.vram_slots_per_layer)
    assert plan.forecast is not None
    assert poor.forecast is not None
    assert plan.forecast.decode_tokens_per_s > poor.forecast.decode_tokens_per_s


LONG = spec(max_context_tokens=131072)
"""The shape of Qwen3-30B-A3B; its keys and values of 65536 tokens take 6 GiB."""


def long_plan(
    free_gib: float, *, ram_bytes: int | None = None, vram_bytes: int | None = None
) -> PlacementPlan:
    vram = {} if vram_bytes is None else {CARD: vram_bytes}
    pc = machine(total_gib=64, available_gib=60, devices=(real_card(free_gib),))
    plans = plan_model(facts(LONG), pc, Budgets(ram_bytes=ram_bytes, vram_bytes=vram), 65536)
    return next(plan for plan in plans if plan.kind is PlanKind.FOUR_BIT)


def test_plan_card_that_holds_no_context_is_used_with_keys_and_values_in_ram() -> None:
    plan = long_plan(6)

    assert plan.problem is None
    assert (plan.device, plan.context_tokens) == (CARD, 65536)
    assert plan.ram_kv_layers
    assert plan.ram_parts[MemoryPart.KV_CACHE] > 0
    assert plan.vram_bytes <= plan.budgets.vram_bytes[CARD]
    codes = {reason.code for reason in plan.reasons}
    assert ReasonCode.KV_IN_RAM in codes
    assert ReasonCode.VRAM_TOO_SMALL not in codes
    without = long_plan(6, vram_bytes=0)
    assert without.device == "cpu"
    assert without.min_vram_bytes == plan.min_vram_bytes
    assert plan.forecast is not None
    assert without.forecast is not None
    assert plan.forecast.decode_tokens_per_s > without.forecast.decode_tokens_per_s


def test_plan_card_without_context_is_of_use_from_its_least_budget_on() -> None:
    least = long_plan(6).min_vram_bytes

    at, below = long_plan(6, vram_bytes=least), long_plan(6, vram_bytes=least - 1)

    assert at.device == CARD
    assert len(at.ram_kv_layers) == LONG.num_layers
    assert sum(at.vram_slots_per_layer) == 0
    assert at.vram_bytes <= least
    assert below.device == "cpu"
    small = next(each for each in below.reasons if each.code is ReasonCode.VRAM_TOO_SMALL)
    assert small.parameters["needed_bytes"] == least


def test_plan_card_without_context_stays_unused_where_ram_has_no_room_for_it() -> None:
    plan = long_plan(6)

    poor = long_plan(6, ram_bytes=plan.ram_bytes - plan.ram_parts[MemoryPart.KV_CACHE])

    assert poor.device == "cpu"
    assert poor.min_vram_bytes > plan.min_vram_bytes


def test_plan_model_without_experts_may_leave_its_keys_and_values_in_ram() -> None:
    dense = spec(
        num_layers=12, num_dense_layers=12, num_experts=0, top_k=0, max_context_tokens=131072
    )
    pc = machine(total_gib=64, available_gib=60, devices=(real_card(4),))
    (plan,) = plan_model(facts(dense), pc, Budgets(), 131072)

    assert plan.device == CARD
    assert 0 < len(plan.ram_kv_layers) <= 12
    assert plan.vram_bytes <= plan.budgets.vram_bytes[CARD]


@settings(max_examples=40)
@given(
    free_gib=st.floats(1, 24),
    ram_part=st.floats(0, 1.3),
    vram_part=st.floats(0, 1),
    bits=st.sampled_from([PlanKind.EXACT, PlanKind.FOUR_BIT]),
)
def test_plan_with_a_real_card_any_budgets_are_kept(
    free_gib: float, ram_part: float, vram_part: float, bits: PlanKind
) -> None:
    plans = plans_with(ALTERNATING, free_gib, Budgets(), bits)
    whole = next(plan for plan in plans if plan.kind is bits)
    ram = whole.min_ram_bytes + int(ram_part * (whole.all_ram_bytes - whole.min_ram_bytes))
    vram = int(vram_part * free_gib * GIB)
    budgets = Budgets(ram_bytes=ram, vram_bytes={CARD: vram})
    plans = plans_with(ALTERNATING, free_gib, budgets, bits)
    plan = next(plan for plan in plans if plan.kind is bits)
    if plan.problem is not None:
        return
    sizes = kv_layer_bytes(ALTERNATING, plan.context_tokens)
    assert plan.ram_bytes == sum(plan.ram_parts.values()) <= ram
    assert plan.vram_bytes == sum(plan.vram_parts.values()) <= vram
    if plan.device == "cpu":
        assert plan.ram_kv_layers == []
        return
    kv_bytes = plan.ram_parts[MemoryPart.KV_CACHE] + plan.vram_parts[MemoryPart.KV_CACHE]
    assert kv_bytes == sum(sizes)
    counts = {share.tier: share.num_experts for share in plan.tiers}
    assert sum(counts.values()) == 24 * 32
    if plan.ram_kv_layers:
        assert Tier.DRIVE not in counts


def test_curve_with_a_real_card_is_the_plan_at_every_point() -> None:
    pc = machine(total_gib=64, available_gib=60, devices=(real_card(8),))
    curve = plan_curve(facts(ALTERNATING), pc, PlanKind.FOUR_BIT)
    assert curve is not None
    width, num_split = len(curve.ram_budgets), 0
    for at in range(width, len(curve.num_in_vram), 7):
        budgets = Budgets(
            ram_bytes=curve.ram_budgets[at % width],
            vram_bytes={CARD: curve.vram_budgets[at // width]},
        )
        plans = plan_model(facts(ALTERNATING), pc, budgets)
        plan = next((each for each in plans if each.kind is PlanKind.FOUR_BIT), None)
        if plan is None or plan.problem is not None:
            assert curve.context_tokens[at] == 0
            continue
        assert plan.forecast is not None
        num_split += bool(plan.ram_kv_layers)
        assert curve.num_in_vram[at] == sum(plan.vram_slots_per_layer)
        assert curve.decode_tokens_per_s_low[at] == plan.forecast.decode_tokens_per_s_low
    assert num_split > 0
