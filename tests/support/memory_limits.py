"""Limits for memory groups that leave a model a part of the room it could use."""

from runtime.plan.memory import BASE_BYTES
from runtime.protocol.plan import PlacementPlan

MARGIN_BYTES = 8 * 1024**2


def limit_for(plan: PlacementPlan, ram_part: float) -> int:
    """Return a limit under which the planner has the least RAM and a part of what is above it."""
    ram_bytes = plan.min_ram_bytes + ram_part * (plan.all_ram_bytes - plan.min_ram_bytes)
    # The planner leaves a twentieth of a group's limit free.
    return int((BASE_BYTES + ram_bytes + MARGIN_BYTES) * 20 / 19) // 4096 * 4096
