"""Within which bounds a budget can be moved, and what the rest of a memory is taken by. Pure."""

import dataclasses
from collections.abc import Sequence

from runtime.protocol.machine import DeviceReport, MachineReport, MemoryHolder
from runtime.protocol.plan import MemoryPart, PlacementPlan, ReasonCode
from runtime.protocol.values import Tier

SIMULATED = "simulated"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRange:
    """One memory of this PC as a slider shows it, in bytes."""

    total_bytes: int
    least_bytes: int
    """Below it a plan does not run, or makes no use of this memory."""
    most_bytes: int
    """More would be of no use, or is not free."""
    others_bytes: int
    """Held by other programs when this one started."""
    reserve_bytes: int
    """Left free by the planner; 0 where it does not say."""
    holders: tuple[tuple[str, int | None], ...] = ()
    """Names of other programs with the bytes they hold, as far as they are known."""


def ram_range(
    machine: MachineReport, plan: PlacementPlan, bounds: PlacementPlan | None = None
) -> BudgetRange:
    """Return the range of the RAM budget; ``bounds`` says other least and most bytes."""
    bounds = bounds or plan
    limit = machine.ram_limit or machine.ram_total
    total = int(min(limit.value, machine.ram_total.value))
    available = min(total, int(machine.ram_available.value))
    reserve = machine.ram_reserve_bytes or _reserve(plan, ReasonCode.RAM_LIMITED_BY_FREE)
    free = max(plan.ram_bytes, available - reserve)
    return BudgetRange(
        total_bytes=total,
        least_bytes=bounds.min_ram_bytes,
        most_bytes=max(bounds.min_ram_bytes, min(bounds.all_ram_bytes, free)),
        others_bytes=total - available,
        reserve_bytes=reserve,
        holders=_named(machine.ram_held_by),
    )


def vram_range(
    device: DeviceReport, plan: PlacementPlan, bounds: PlacementPlan | None = None
) -> BudgetRange:
    """Return the range of a device's budget; from 0, which leaves it unused."""
    bounds = bounds or plan
    reserve = device.reserve_bytes or _reserve(plan, ReasonCode.VRAM_LIMITED_BY_FREE)
    free = max(0, plan.vram_bytes, min(device.free_bytes, device.total_bytes) - reserve)
    return BudgetRange(
        total_bytes=device.total_bytes,
        least_bytes=bounds.min_vram_bytes,
        most_bytes=min(bounds.all_vram_bytes, free) if bounds.all_vram_bytes else free,
        others_bytes=max(0, device.total_bytes - device.free_bytes),
        reserve_bytes=reserve,
        holders=_named(device.held_by),
    )


def free_range(machine: MachineReport, device: DeviceReport | None) -> BudgetRange:
    """Return the range of a budget for any model: of a device's memory, or of RAM without one."""
    if device is not None:
        total, available, reserve = device.total_bytes, device.free_bytes, device.reserve_bytes
        holders = _named(device.held_by)
    else:
        limit = machine.ram_limit or machine.ram_total
        total = int(min(limit.value, machine.ram_total.value))
        available, reserve = int(machine.ram_available.value), machine.ram_reserve_bytes
        holders = _named(machine.ram_held_by)
    available = min(total, available)
    return BudgetRange(
        total_bytes=total,
        least_bytes=0,
        most_bytes=max(0, available - reserve),
        others_bytes=total - available,
        reserve_bytes=min(reserve, available),
        holders=holders,
    )


def _named(holders: Sequence[MemoryHolder]) -> tuple[tuple[str, int | None], ...]:
    return tuple((holder.name, holder.held_bytes) for holder in holders)


def used_device(machine: MachineReport | None) -> DeviceReport | None:
    """Return the device that plans use; None where there is none."""
    devices = machine.devices if machine is not None else []
    return next((device for device in devices if device.is_used), None)


def is_simulated(device: str) -> bool:
    """Whether a device id names one that is only simulated."""
    return device.startswith(SIMULATED)


def expert_ratio(plan: PlacementPlan, tier: Tier) -> float:
    """Return which part of all experts a plan puts into a tier."""
    total = sum(share.num_experts for share in plan.tiers)
    held = sum(share.num_experts for share in plan.tiers if share.tier is tier)
    return held / total if total else 0.0


def dense_bytes(plan: PlacementPlan) -> tuple[Tier, int]:
    """Return where the part that every token uses lies, and how big it is."""
    vram = plan.vram_parts.get(MemoryPart.DENSE, 0)
    if vram:
        return Tier.VRAM, vram
    return Tier.RAM, plan.ram_parts.get(MemoryPart.DENSE, 0)


def _reserve(plan: PlacementPlan, code: ReasonCode) -> int:
    values = (
        reason.parameters.get("reserve_bytes", 0) for reason in plan.reasons if reason.code is code
    )
    return int(next(values, 0))
