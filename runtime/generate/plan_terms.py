"""What a plan says, in the terms of whoever carries it out."""

import msgspec

from runtime.device.base import Device
from runtime.device.open import CPU, open_device
from runtime.errors import LarderError
from runtime.policy.split import even_split
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.model import TierShare
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.protocol.values import Tier
from runtime.residency.shape import CacheShape
from runtime.spec.footprint import staging_slots
from runtime.spec.model import ModelSpec

_KEPT_OF_16 = 13
"""Of the experts on a device that turned out to be full, so many of sixteen stay."""


def device_of(plan: PlacementPlan) -> Device | None:
    """Return the device of a plan with its budget, None if it uses none."""
    return None if plan.device == CPU else open_device(plan.device, vram_limit_bytes(plan))


def shape_of(plan: PlacementPlan, spec: ModelSpec) -> CacheShape:
    """Return the slots of a plan; raise ``PLAN_OUTDATED`` if they do not fit the model."""
    if not 0 < plan.context_tokens <= spec.max_context_tokens:
        raise LarderError(
            ErrorCode.PLAN_OUTDATED,
            detail=f"{plan.context_tokens} of {spec.max_context_tokens} context tokens",
            folder=plan.model_folder,
        )
    try:
        return CacheShape(
            spec.moe_layers,
            tuple(plan.slots_per_layer),
            spec.num_experts,
            above_of(plan, spec) if plan.device != CPU else (),
            staging_slots(spec),
        )
    except ValueError as error:
        raise LarderError(
            ErrorCode.PLAN_OUTDATED, detail=str(error), folder=plan.model_folder
        ) from error


def above_of(plan: PlacementPlan, spec: ModelSpec) -> tuple[int, ...]:
    """Return the device slots of a plan, for each MoE layer."""
    return tuple(plan.vram_slots_per_layer) or (0,) * len(spec.moe_layers)


def fewer_in_vram(plan: PlacementPlan, record_bytes: int, kept: int | None = None) -> PlacementPlan:
    """Return the same plan with a part of its experts off the device; itself if none are there.

    Its budget there shrinks by what they took, so that the rest of the device is left alone.
    ``kept`` is how many stay, else most of them.
    """
    slots = sum(plan.vram_slots_per_layer)
    kept = slots * _KEPT_OF_16 // 16 if kept is None else kept
    if kept == slots:
        return plan
    freed_bytes = (slots - kept) * record_bytes
    parts = dict(plan.vram_parts)
    parts[MemoryPart.EXPERTS] = parts.get(MemoryPart.EXPERTS, 0) - freed_bytes
    vram_bytes = plan.vram_bytes - freed_bytes
    budgets = msgspec.structs.replace(
        plan.budgets, vram_bytes={**plan.budgets.vram_bytes, plan.device: vram_bytes}
    )
    return msgspec.structs.replace(
        plan,
        budgets=budgets,
        vram_slots_per_layer=list(even_split(len(plan.vram_slots_per_layer), kept, kept)),
        vram_parts=parts,
        vram_bytes=vram_bytes,
        tiers=[_without(share, slots - kept, record_bytes) for share in plan.tiers],
    )


def _without(share: TierShare, number: int, record_bytes: int) -> TierShare:
    """Return the device's share of a plan with fewer experts, any other as it is."""
    if share.tier is not Tier.VRAM:
        return share
    return msgspec.structs.replace(
        share,
        num_experts=share.num_experts - number,
        # Of a mix the largest record counts here, and the mean there.
        bytes=max(0, share.bytes - number * record_bytes),
    )


def ram_limit_bytes(plan: PlacementPlan) -> int:
    """Return the RAM budget that a plan sets."""
    budget_bytes = plan.budgets.ram_bytes
    return plan.ram_bytes if budget_bytes is None else budget_bytes


def vram_limit_bytes(plan: PlacementPlan) -> int:
    """Return the budget that a plan sets for its device."""
    return plan.budgets.vram_bytes.get(plan.device, plan.vram_bytes)


def vram_budget_bytes(plan: PlacementPlan) -> int:
    """Return the budget of the device that a plan uses, 0 if it uses none."""
    return 0 if plan.device == CPU else vram_limit_bytes(plan)


def error_of(problem: ErrorReport) -> LarderError:
    """Return a reported problem as the exception it stands for."""
    return LarderError(problem.code, problem.detail, **problem.parameters)
