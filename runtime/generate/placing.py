"""Another placement for a model that is loaded: other budgets and slots, the same answers."""

import contextlib
from collections.abc import Sequence

from runtime.device.open import CPU
from runtime.errors import LarderError
from runtime.generate.home import Home
from runtime.generate.loading import LoadedParts, free_ram_bytes
from runtime.generate.plan_terms import (
    above_of,
    device_of,
    error_of,
    ram_limit_bytes,
    shape_of,
    vram_limit_bytes,
)
from runtime.kernels.base import Kernels
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.residency.device_experts import DeviceExperts
from runtime.spec.footprint import experts_bytes, kv_layer_bytes
from runtime.spec.ram_slots import ram_experts_bytes
from runtime.telemetry.recorder import Counters

_SAME = ("model_folder", "model_fingerprint", "store_folder", "expert_format", "context_tokens")
"""What a proposed plan shares with the one in force."""


def check_placement(parts: LoadedParts, plan: PlacementPlan) -> None:
    """Raise ``LarderError`` if a loaded model cannot be placed as a plan says."""
    if plan.problem is not None:
        raise error_of(plan.problem)
    for field in _SAME:
        if getattr(plan, field) != getattr(parts.plan, field):
            raise LarderError(
                ErrorCode.PLAN_OUTDATED, detail=f"another {field}", folder=plan.model_folder
            )
    shape = shape_of(plan, parts.spec)
    layout = parts.experts.layout
    device = parts.device
    is_same = device is not None and plan.device == parts.plan.device
    more_kv_bytes = _more_kv_bytes(parts, plan) if is_same else 0
    _check_budget(parts, plan, _experts_bytes(parts, shape.slots_per_layer) + more_kv_bytes)
    if is_same and device is not None:
        held = device.ledger.by_kind()
        wanted_bytes = experts_bytes(layout, shape.above_per_layer)
        needed_bytes = sum(held.values()) - held[MemoryPart.EXPERTS] + wanted_bytes
        _refuse_more(needed_bytes - more_kv_bytes, vram_limit_bytes(plan))


def place(parts: LoadedParts, plan: PlacementPlan, kernels: Kernels, counters: Counters) -> None:
    """Place a loaded model as a plan says that was checked; on an error all is as before.

    ``kernels`` are the processor's.
    """
    if plan.device != parts.plan.device:
        _move(parts, plan, kernels, counters)
    elif tuple(plan.ram_kv_layers) != parts.kv.ram_layers:
        _exchange(parts, plan)
    else:
        parts.experts.resize(
            plan.slots_per_layer,
            ram_limit_bytes(plan),
            above_of(plan, parts.spec),
            vram_limit_bytes(plan),
        )
    parts.plan = plan


def _exchange(parts: LoadedParts, plan: PlacementPlan) -> None:
    """Let keys and values and experts change places between RAM and the device.

    Experts give way in both memories first, and take what is left afterwards.
    """
    experts, device = parts.experts, parts.device
    assert device is not None, "keys and values lie in two memories beside a device alone"
    slots_before, above_before = experts.slots_per_layer, above_of(parts.plan, parts.spec)
    above_after = above_of(plan, parts.spec)
    limits_before = (parts.ledger.limit_bytes, device.ledger.limit_bytes)
    limits_after = (ram_limit_bytes(plan), vram_limit_bytes(plan))
    kv_before = parts.kv.ram_layers
    with contextlib.ExitStack() as undo:
        undo.callback(
            experts.resize, slots_before, limits_before[0], above_before, limits_before[1]
        )
        experts.resize(
            tuple(map(min, slots_before, plan.slots_per_layer)),
            max(limits_before[0], limits_after[0]),
            tuple(map(min, above_before, above_after)),
            max(limits_before[1], limits_after[1]),
        )
        parts.kv.move(plan.ram_kv_layers)
        undo.callback(parts.kv.move, kv_before)
        experts.resize(plan.slots_per_layer, limits_after[0], above_after, limits_after[1])
        undo.pop_all()


def _more_kv_bytes(parts: LoadedParts, plan: PlacementPlan) -> int:
    """Return by how much the keys and values in RAM grow; beside a device they leave it so."""
    sizes = kv_layer_bytes(parts.spec, plan.context_tokens)
    after = sum(sizes[layer] for layer in plan.ram_kv_layers)
    return after - sum(sizes[layer] for layer in parts.kv.ram_layers)


def _experts_bytes(parts: LoadedParts, slots_per_layer: Sequence[int]) -> int:
    """Return what experts take of RAM with such slots."""
    return ram_experts_bytes(parts.spec, parts.experts.records, slots_per_layer)


def _check_budget(parts: LoadedParts, plan: PlacementPlan, wanted_bytes: int) -> None:
    """Raise ``LarderError`` if RAM slots of so many bytes, and what is with them, have no room."""
    held = parts.ledger.by_kind()
    more_bytes = wanted_bytes - held[MemoryPart.EXPERTS]
    if plan.device == parts.plan.device:
        _refuse_more(sum(held.values()) + more_bytes, ram_limit_bytes(plan))
    elif plan.device == CPU:
        more_bytes = plan.ram_bytes - sum(held.values())
        _refuse_more(plan.ram_bytes, ram_limit_bytes(plan))
    free_bytes = free_ram_bytes() if more_bytes > 0 else 0
    if more_bytes > free_bytes:
        raise LarderError(ErrorCode.RAM_NOT_FREE, free_bytes=free_bytes, needed_bytes=more_bytes)


def _refuse_more(needed_bytes: int, limit_bytes: int) -> None:
    if needed_bytes > limit_bytes:
        raise LarderError(
            ErrorCode.RAM_BUDGET_TOO_SMALL, budget_bytes=limit_bytes, needed_bytes=needed_bytes
        )


def _move(parts: LoadedParts, plan: PlacementPlan, kernels: Kernels, counters: Counters) -> None:
    """Move the dense part and the conversation to another memory; the dense part is read again.

    While the old home exists the new one is made beside it, so RAM slots give way first.
    """
    spec, ledger, experts = parts.spec, parts.ledger, parts.experts
    slots_before, limit_before = experts.slots_per_layer, ledger.limit_bytes
    fewer = tuple(map(min, slots_before, plan.slots_per_layer))
    above_before = () if parts.device is None else above_of(parts.plan, spec)
    above_limit = 0 if parts.device is None else parts.device.ledger.limit_bytes
    limit_meanwhile = ledger.held_bytes + ram_limit_bytes(plan)
    with contextlib.ExitStack() as undo:
        undo.callback(experts.resize, slots_before, limit_before, above_before, above_limit)
        experts.resize(fewer, limit_meanwhile, above_before, above_limit)
        held_bytes = ledger.held_bytes
        home = Home(
            parts.store, spec, plan.context_tokens, ledger, device_of(plan), plan.ram_kv_layers
        )
        undo.callback(home.close)
        above = None
        # The ledger's own room counts the old home too.
        experts_there = _experts_bytes(parts, plan.slots_per_layer)
        room_bytes = ram_limit_bytes(plan) - experts_there - (ledger.held_bytes - held_bytes)
        if home.device is not None:
            shape = shape_of(plan, spec)
            above = DeviceExperts(home.device, shape, experts.layout.record_bytes)
            undo.callback(above.close)
            room_bytes = home.device.ledger.free_bytes
        home.take_work(room_bytes)
        home.read(_ignore_progress)
        home.kv.take_over(parts.kv)
        model = home.build(kernels, experts, counters)
        undo.pop_all()
    experts.attach(above)
    parts.link_bytes_before = parts.link_bytes()
    before, parts.home, parts.model = parts.home, home, model
    before.close()
    experts.resize(
        plan.slots_per_layer, ram_limit_bytes(plan), above_of(plan, spec), vram_limit_bytes(plan)
    )


def _ignore_progress(done_bytes: int, total_bytes: int) -> None:
    """Take progress and do nothing with it."""
    del done_bytes, total_bytes
