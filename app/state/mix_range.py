"""Which sizes a copy of mixed bits can have, and which one suits this PC. Pure."""

import dataclasses
from collections.abc import Sequence

from app.state.budget_range import free_range
from runtime.protocol.machine import MachineReport
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind

LEAST_BITS = 2.7
"""Stored bits of a weight with the fewest bits: two, scales included, some matrices with more."""
MOST_BITS = 8.5
USUAL_BITS = 4.5
"""Taken where memory sets no bound: with more, uniform bits are as good."""
ROOM = 0.95
"""Part of the free memory that a mix should take: the estimate may be a little off."""


@dataclasses.dataclass(frozen=True, slots=True)
class MixRange:
    """Sizes of all weights of a copy, in bytes."""

    least_bytes: int
    most_bytes: int
    best_bytes: int
    num_parameters: int

    def bits(self, num_bytes: int) -> float:
        """Return the mean bits of a weight in a copy of a size."""
        return 8 * num_bytes / self.num_parameters


def mix_range(
    report: ModelReport, plans: Sequence[PlacementPlan], machine: MachineReport
) -> MixRange | None:
    """Return the range for a model; None for one whose bits cannot be mixed.

    They can where the published weights could be written in fewer bits at all.
    """
    exact = next((plan for plan in plans if plan.kind is PlanKind.EXACT), None)
    has_fewer = any(plan.kind is not PlanKind.EXACT for plan in plans)
    number = report.num_parameters
    if exact is None or not has_fewer or not report.num_experts or not number:
        return None
    beside = sum(exact.ram_parts.get(part, 0) for part in (MemoryPart.KV_CACHE, MemoryPart.WORK))
    free = free_range(machine, None).most_bytes - exact.base_bytes - beside
    least, most = round(LEAST_BITS * number / 8), round(MOST_BITS * number / 8)
    best = min(round(ROOM * free), round(USUAL_BITS * number / 8))
    return MixRange(least, most, min(max(best, least), most), number)
