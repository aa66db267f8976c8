"""Another placement for a model that is loaded: other budgets and slots, the same answers."""

from runtime.errors import LarderError
from runtime.generate.loading import LoadedParts, free_ram_bytes, ram_limit_bytes, shape_of
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.spec.footprint import experts_bytes

_SAME = ("model_folder", "model_fingerprint", "store_folder", "expert_format", "context_tokens")
"""What a proposed plan shares with the one in force."""


def check_placement(parts: LoadedParts, plan: PlacementPlan) -> None:
    """Raise ``LarderError`` if a loaded model cannot be placed as a plan says."""
    if plan.problem is not None:
        raise LarderError(plan.problem.code, plan.problem.detail, **plan.problem.parameters)
    for field in _SAME:
        if getattr(plan, field) != getattr(parts.plan, field):
            raise LarderError(
                ErrorCode.PLAN_OUTDATED, detail=f"another {field}", folder=plan.model_folder
            )
    shape = shape_of(plan, parts.spec)
    held = parts.ledger.by_kind()
    wanted_bytes = experts_bytes(parts.experts.layout, shape.slots_per_layer)
    more_bytes = wanted_bytes - held[MemoryPart.EXPERTS]
    needed_bytes = sum(held.values()) + more_bytes
    limit_bytes = ram_limit_bytes(plan)
    if needed_bytes > limit_bytes:
        raise LarderError(
            ErrorCode.RAM_BUDGET_TOO_SMALL, budget_bytes=limit_bytes, needed_bytes=needed_bytes
        )
    free_bytes = free_ram_bytes() if more_bytes > 0 else 0
    if more_bytes > free_bytes:
        raise LarderError(ErrorCode.RAM_NOT_FREE, free_bytes=free_bytes, needed_bytes=more_bytes)


def place(parts: LoadedParts, plan: PlacementPlan) -> None:
    """Place a loaded model as a plan says that was checked; on an error all is as before."""
    parts.experts.resize(plan.slots_per_layer, ram_limit_bytes(plan))
