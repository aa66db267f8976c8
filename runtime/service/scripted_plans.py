"""The plans for the scripted engine's made-up model."""

import dataclasses

from runtime.engine.script import TOP_K, Script
from runtime.errors import LarderError, report_of
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.model import ModelReport, TierShare
from runtime.protocol.plan import (
    MemoryPart,
    PlacementPlan,
    PlanChoice,
    PlanKind,
    Reason,
    ReasonCode,
)
from runtime.protocol.values import Budgets, Forecast, Tier, WeightFormat

MIB = 1 << 20
DENSE_BYTES = 100 * MIB
EXPERT_BYTES = {
    PlanKind.EXACT: 2 * MIB,
    PlanKind.EIGHT_BIT: MIB,
    PlanKind.SIX_BIT: MIB * 3 // 4,
    PlanKind.FOUR_BIT: MIB // 2,
    PlanKind.THREE_BIT: MIB * 3 // 8,
    PlanKind.TWO_BIT: MIB // 4,
}
FORMATS = {
    PlanKind.EXACT: WeightFormat.BF16,
    PlanKind.EIGHT_BIT: WeightFormat.Q8_G32,
    PlanKind.SIX_BIT: WeightFormat.Q6_G32,
    PlanKind.FOUR_BIT: WeightFormat.Q4A_G32,
    PlanKind.THREE_BIT: WeightFormat.Q3_G16,
    PlanKind.TWO_BIT: WeightFormat.Q2_G16,
}
CHOICES = {
    PlanKind.EXACT: PlanChoice.EXACT,
    PlanKind.EIGHT_BIT: PlanChoice.BALANCED,
    PlanKind.FOUR_BIT: PlanChoice.SMALLEST,
}
"""Always offered; the other kinds where such a copy was written."""
KV_BYTES = 64 * MIB
FREE_RAM_BYTES = 12 * 1024 * MIB
DEVICE = "simulated:0"
_WORK_BYTES = 32 * MIB
_BASE_BYTES = 120 * MIB
_FIXED_BYTES = DENSE_BYTES + KV_BYTES + _WORK_BYTES
"""What has to lie on the device, or in RAM where there is none, besides experts."""


def num_all_experts(script: Script) -> int:
    """Return the experts of all layers."""
    return script.num_layers * script.num_experts


def all_experts_bytes(script: Script, kind: PlanKind) -> int:
    """Return what the experts of all layers take."""
    return num_all_experts(script) * EXPERT_BYTES[kind]


def device_bytes(script: Script) -> int:
    """Return the memory of the made-up accelerator."""
    return int(script.device_gib * 1024) * MIB


@dataclasses.dataclass(frozen=True, slots=True)
class _Slots:
    """Experts by tier."""

    in_vram: int
    in_ram: int
    on_drive: int
    is_device_used: bool


def make_plan(
    script: Script,
    report: ModelReport,
    kind: PlanKind,
    budgets: Budgets,
    context_tokens: int,
) -> PlacementPlan:
    """Return the plan of one kind: the device first, then RAM as the budget lets in."""
    slot_bytes = EXPERT_BYTES[kind]
    least_slots = script.num_layers * min(TOP_K, script.num_experts)
    vram_budget = budgets.vram_bytes.get(DEVICE, device_bytes(script))
    is_device_used = bool(device_bytes(script)) and vram_budget >= _FIXED_BYTES
    ram_fixed = _WORK_BYTES if is_device_used else _FIXED_BYTES
    min_ram_bytes = ram_fixed + least_slots * slot_bytes
    all_ram_bytes = ram_fixed + all_experts_bytes(script, kind)
    budget = budgets.ram_bytes
    if budget is None:
        budget = max(min(all_ram_bytes, FREE_RAM_BYTES), min_ram_bytes)
    slots = _divide(script, budget - ram_fixed, vram_budget, slot_bytes, is_device_used)
    copy = next((each for each in report.prepared if each.expert_format is FORMATS[kind]), None)
    needs_prepare = kind is not PlanKind.EXACT and copy is None
    drive_bytes_per_token = least_slots * slot_bytes * slots.on_drive / num_all_experts(script)
    fixed = {
        MemoryPart.DENSE: DENSE_BYTES,
        MemoryPart.KV_CACHE: KV_BYTES,
        MemoryPart.WORK: _WORK_BYTES,
    }
    ram_parts = {MemoryPart.WORK: _WORK_BYTES} if is_device_used else fixed
    vram_parts = fixed if is_device_used else {}
    vram_experts_bytes = slots.in_vram * slot_bytes
    return PlacementPlan(
        kind=kind,
        model_folder=report.folder,
        model_fingerprint=report.fingerprint,
        store_folder=copy.folder if copy else report.folder,
        expert_format=FORMATS[kind],
        dense_format=WeightFormat.BF16,
        is_exact=kind is PlanKind.EXACT,
        needs_prepare=needs_prepare,
        bytes_to_write=all_experts_bytes(script, kind) if needs_prepare else 0,
        budgets=Budgets(ram_bytes=budget, vram_bytes=budgets.vram_bytes),
        context_tokens=context_tokens or script.context_tokens,
        slots_per_layer=[slots.in_ram // script.num_layers] * script.num_layers,
        tiers=_tiers(slots, slot_bytes),
        ram_parts={**ram_parts, MemoryPart.EXPERTS: slots.in_ram * slot_bytes},
        ram_bytes=ram_fixed + slots.in_ram * slot_bytes,
        min_ram_bytes=min_ram_bytes,
        all_ram_bytes=all_ram_bytes,
        base_bytes=_BASE_BYTES,
        forecast=_forecast(script, drive_bytes_per_token),
        reasons=[
            _where_reason(
                script, slots, ram_fixed + slots.in_ram * slot_bytes, drive_bytes_per_token
            ),
            _writing_reason(script, kind, needs_prepare),
        ],
        problem=_budget_problem(budget, min_ram_bytes),
        choice=CHOICES.get(kind),
        device=DEVICE if is_device_used else "cpu",
        vram_slots_per_layer=(
            [slots.in_vram // script.num_layers] * script.num_layers if is_device_used else []
        ),
        vram_parts=(
            {**vram_parts, MemoryPart.EXPERTS: vram_experts_bytes} if is_device_used else {}
        ),
        vram_bytes=_FIXED_BYTES + vram_experts_bytes if is_device_used else 0,
        min_vram_bytes=_FIXED_BYTES if device_bytes(script) else 0,
        all_vram_bytes=(
            _FIXED_BYTES + all_experts_bytes(script, kind) if device_bytes(script) else 0
        ),
    )


def _divide(
    script: Script, ram_bytes: int, vram_bytes: int, slot_bytes: int, is_device_used: bool
) -> _Slots:
    """Return the same slots for every layer: first those of the device, then of RAM."""
    layer_bytes = script.num_layers * slot_bytes
    most = script.num_experts
    in_vram = min((vram_bytes - _FIXED_BYTES) // layer_bytes, most) if is_device_used else 0
    least = min(TOP_K, most - in_vram)
    in_ram = min(max(ram_bytes // layer_bytes, least), most - in_vram)
    return _Slots(
        in_vram=in_vram * script.num_layers,
        in_ram=in_ram * script.num_layers,
        on_drive=(most - in_vram - in_ram) * script.num_layers,
        is_device_used=is_device_used,
    )


def _tiers(slots: _Slots, slot_bytes: int) -> list[TierShare]:
    shares = [(Tier.RAM, "cpu", slots.in_ram), (Tier.DRIVE, "scripted", slots.on_drive)]
    if slots.is_device_used:
        shares.insert(0, (Tier.VRAM, DEVICE, slots.in_vram))
    return [
        TierShare(tier=tier, device=device, num_experts=num, bytes=num * slot_bytes)
        for tier, device, num in shares
    ]


def _where_reason(
    script: Script, slots: _Slots, ram_bytes: int, drive_bytes_per_token: float
) -> Reason:
    if not slots.on_drive:
        return Reason(code=ReasonCode.FITS_IN_RAM, parameters={"needed_bytes": ram_bytes})
    return Reason(
        code=ReasonCode.READS_FROM_DRIVE,
        parameters={
            "num_experts": slots.on_drive,
            "num_all_experts": num_all_experts(script),
            "bytes_per_token": int(drive_bytes_per_token),
        },
    )


def _writing_reason(script: Script, kind: PlanKind, needs_prepare: bool) -> Reason:
    if not needs_prepare:
        return Reason(code=ReasonCode.NOTHING_WRITTEN)
    return Reason(
        code=ReasonCode.WRITES_ONCE, parameters={"size_bytes": all_experts_bytes(script, kind)}
    )


def _budget_problem(budget_bytes: int, min_ram_bytes: int) -> ErrorReport | None:
    if budget_bytes >= min_ram_bytes:
        return None
    return report_of(
        LarderError(
            ErrorCode.RAM_BUDGET_TOO_SMALL, budget_bytes=budget_bytes, needed_bytes=min_ram_bytes
        )
    )


def _forecast(script: Script, drive_bytes_per_token: float) -> Forecast:
    return Forecast(
        prompt_tokens_per_s_low=script.prompt_tokens_per_s * 0.8,
        prompt_tokens_per_s_high=script.prompt_tokens_per_s * 1.2,
        decode_tokens_per_s_low=script.decode_tokens_per_s * 0.8,
        decode_tokens_per_s_high=script.decode_tokens_per_s * 1.2,
        drive_bytes_per_token=drive_bytes_per_token,
        basis="assumed",
    )
