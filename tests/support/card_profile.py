"""A machine profile made to measure: a card for a part of a model's experts, RAM for another."""

import bisect
import json
from collections.abc import Callable
from pathlib import Path

from runtime.plan.memory import BASE_BYTES
from runtime.plan.planner import plan_model
from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets
from runtime.spec.facts import ModelFacts
from runtime.spec.tensors import PAGE_BYTES
from tests.support.plan_cases import GIB, facts_of, machine

CARD = "simulated:0"
TOTAL_GIB = 8
RESERVE_BYTES = GIB
"""What the planner leaves free of a PC with so much memory."""


def write_card_profile(
    path: Path,
    model_folder: Path,
    *,
    vram_part: float = 0.1,
    ram_part: float = 1 / 3,
    link_gb_per_s: float = 4.0,
    drive_gb_per_s: float = 0.5,
    is_drive_held: bool = False,
) -> Path:
    """Write a profile under which the exact plan of a model has three tiers, and return its path.

    The simulated card holds the dense part, the context that the planner chooses by itself, and
    ``vram_part`` of the routed experts; RAM holds ``ram_part`` of them. A drive that is held reads
    really no faster than stated.
    """
    facts = facts_of(model_folder)
    whole = _exact_plan(facts, Budgets())
    num_experts = len(facts.spec.moe_layers) * facts.spec.num_experts

    def num_on_card(page: int) -> int:
        budgets = Budgets(vram_bytes={CARD: page * PAGE_BYTES})
        return sum(_exact_plan(facts, budgets).vram_slots_per_layer)

    def num_in_ram(page: int) -> int:
        plan = _exact_plan(facts, Budgets(ram_bytes=page * PAGE_BYTES))
        return 0 if plan.problem else sum(plan.slots_per_layer)

    vram_bytes = _least_bytes(num_on_card, whole.all_vram_bytes, round(vram_part * num_experts))
    ram_bytes = _least_bytes(num_in_ram, whole.all_ram_bytes, round(ram_part * num_experts))
    profile = {
        "ram": {
            "total_gib": TOTAL_GIB,
            "available_gib": (ram_bytes + BASE_BYTES + RESERVE_BYTES) / GIB,
        },
        "drive": {"most_gb_per_s" if is_drive_held else "read_gb_per_s": drive_gb_per_s},
        "devices": [
            {
                "name": "Simulated card",
                "total_gib": vram_bytes / GIB,
                "free_gib": vram_bytes / GIB,
                "link_gb_per_s": link_gb_per_s,
            }
        ],
    }
    path.write_text(json.dumps(profile, indent=2), encoding="utf-8")
    return path


def _least_bytes(num_held: Callable[[int], int], most_bytes: int, wanted: int) -> int:
    """Return the least budget, in whole pages, that holds so many experts."""
    pages = range(most_bytes // PAGE_BYTES + 2)
    return bisect.bisect_left(pages, wanted, key=num_held) * PAGE_BYTES


def _exact_plan(facts: ModelFacts, budgets: Budgets) -> PlacementPlan:
    return plan_model(facts, _vast_machine(), budgets)[0]


def _vast_machine() -> MachineReport:
    card = DeviceReport(
        device=CARD,
        name="Simulated card",
        total_bytes=4096 * GIB,
        free_bytes=4096 * GIB,
        is_simulated=True,
        is_used=True,
    )
    return machine(total_gib=4096, available_gib=4000, devices=(card,))
