"""Published models on home PCs: the plans are those that were reviewed, and they make sense."""

import time

import pytest

from runtime.plan.planner import plan_model
from runtime.protocol.plan import PlacementPlan, PlanKind, ReasonCode
from runtime.protocol.values import Budgets, Tier
from tests.support.golden_plans import MODELS, PLANS, plans_of, text_of
from tests.support.home_machines import HOMES
from tests.support.plan_cases import facts, machine, spec

QWEN3_30B = "Qwen--Qwen3-30B-A3B"
MAX_PLANNING_S = 0.2


def plan_of(home: str, model: str, kind: PlanKind) -> PlacementPlan:
    return next(plan for plan in plans_of(HOMES[home])[model] if plan.kind is kind)


@pytest.mark.parametrize("name", HOMES)
def test_plans_are_those_that_were_reviewed(name: str) -> None:
    assert text_of(HOMES[name]) == (PLANS / f"{name}.txt").read_text(encoding="utf-8")


def test_every_file_belongs_to_a_pc_and_holds_all_models() -> None:
    assert {path.stem for path in PLANS.glob("*.txt")} == set(HOMES)
    assert len(MODELS) == 8


@pytest.mark.parametrize("name", HOMES)
def test_plans_take_no_more_than_there_is_and_say_why(name: str) -> None:
    home = HOMES[name]
    here = home.machine()
    most = min(home.available, home.limit or home.available) * 1024**3
    for plans in plans_of(home).values():
        recommended = [plan for plan in plans if plan.recommended_because]
        assert len(recommended) == any(plan.problem is None for plan in plans)
        for plan in plans:
            if plan.problem is not None:
                assert plan.min_ram_bytes > most - here.ram_total.value / 4
                continue
            assert len(plan.recommended_because) in {0, 2}
            assert plan.ram_bytes + plan.base_bytes <= most
            cards = {device.device: device.free_bytes for device in here.devices}
            assert plan.vram_bytes <= cards.get(plan.device, 0)
            assert plan.reasons


def test_more_memory_is_never_slower() -> None:
    rates = [
        plan_of(home, QWEN3_30B, PlanKind.FOUR_BIT).forecast
        for home in ("laptop-16-gpu-6", "desktop-32-gpu-12", "desktop-64-gpu-24")
    ]
    known = [rate.decode_tokens_per_s for rate in rates if rate is not None]
    assert known == sorted(known)
    assert len(known) == 3


def test_shared_memory_is_never_called_vram() -> None:
    for name in ("apple-16", "apple-64", "apu-128"):
        for plans in plans_of(HOMES[name]).values():
            for plan in plans:
                assert plan.vram_bytes == 0
                assert all(share.tier is not Tier.VRAM for share in plan.tiers)


def test_second_card_is_named() -> None:
    for plans in plans_of(HOMES["two-gpus"]).values():
        for plan in plans:
            named = [
                reason.parameters["device"]
                for reason in plan.reasons
                if reason.code is ReasonCode.OTHER_GPU_UNUSED
            ]
            assert named == ["Second card"]
            assert plan.device in {"cuda:0", "cpu"}


def test_slow_drive_makes_fewer_bits_worth_it() -> None:
    slow = plan_of("usb-drive", QWEN3_30B, PlanKind.EXACT).forecast
    same_pc = plan_of("usb-drive", QWEN3_30B, PlanKind.FOUR_BIT)
    assert same_pc.recommended_because
    assert slow is not None
    assert same_pc.forecast is not None
    assert same_pc.forecast.decode_tokens_per_s > 3 * slow.decode_tokens_per_s


def test_planning_the_largest_shapes_takes_less_than_a_fifth_of_a_second() -> None:
    largest = facts(spec(num_layers=94, num_experts=512, top_k=10))
    here = machine()
    taken = []
    for _ in range(5):
        started_s = time.process_time()
        assert plan_model(largest, here, Budgets())
        taken.append(time.process_time() - started_s)
    assert min(taken) < MAX_PLANNING_S
