"""The plans for the scripted engine's made-up model."""

from runtime.engine.script import Script
from runtime.errors import LarderError, report_of
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.model import ModelReport, TierShare
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind, Reason, ReasonCode
from runtime.protocol.values import Budgets, Forecast, Tier, WeightFormat

MIB = 1 << 20
NUM_LAYERS = 24
NUM_EXPERTS = 64
TOP_K = 8
DENSE_BYTES = 100 * MIB
EXPERT_BYTES = {PlanKind.EXACT: 2 * MIB, PlanKind.EIGHT_BIT: MIB, PlanKind.FOUR_BIT: MIB // 2}
FORMATS = {
    PlanKind.EXACT: WeightFormat.BF16,
    PlanKind.EIGHT_BIT: WeightFormat.Q8_G32,
    PlanKind.FOUR_BIT: WeightFormat.Q4_G32,
}
KV_BYTES = 64 * MIB
_WORK_BYTES = 32 * MIB
_BASE_BYTES = 120 * MIB
_FIXED_BYTES = DENSE_BYTES + KV_BYTES + _WORK_BYTES


def all_experts_bytes(kind: PlanKind) -> int:
    """Return what the experts of all layers take."""
    return NUM_LAYERS * NUM_EXPERTS * EXPERT_BYTES[kind]


def make_plan(
    script: Script,
    report: ModelReport,
    kind: PlanKind,
    budgets: Budgets,
    context_tokens: int,
) -> PlacementPlan:
    """Return the plan of one kind, with as many experts in RAM as the budget lets in."""
    slot_bytes = EXPERT_BYTES[kind]
    all_ram_bytes = _FIXED_BYTES + all_experts_bytes(kind)
    min_ram_bytes = _FIXED_BYTES + NUM_LAYERS * TOP_K * slot_bytes
    budget = all_ram_bytes if budgets.ram_bytes is None else budgets.ram_bytes
    per_layer = (budget - _FIXED_BYTES) // (NUM_LAYERS * slot_bytes)
    slots = min(max(per_layer, TOP_K), NUM_EXPERTS)
    in_ram, on_drive = slots * NUM_LAYERS, (NUM_EXPERTS - slots) * NUM_LAYERS
    copy = next((each for each in report.prepared if each.expert_format is FORMATS[kind]), None)
    needs_prepare = kind is not PlanKind.EXACT and copy is None
    shares = ((Tier.RAM, "cpu", in_ram), (Tier.DRIVE, "scripted", on_drive))
    drive_bytes_per_token = TOP_K * slot_bytes * on_drive / NUM_EXPERTS
    where = (
        Reason(
            code=ReasonCode.READS_FROM_DRIVE,
            parameters={
                "num_experts": on_drive,
                "num_all_experts": NUM_EXPERTS * NUM_LAYERS,
                "bytes_per_token": int(drive_bytes_per_token),
            },
        )
        if on_drive
        else Reason(
            code=ReasonCode.FITS_IN_RAM,
            parameters={"needed_bytes": all_ram_bytes, "budget_bytes": budget},
        )
    )
    return PlacementPlan(
        kind=kind,
        model_folder=report.folder,
        model_fingerprint=report.fingerprint,
        store_folder=copy.folder if copy else report.folder,
        expert_format=FORMATS[kind],
        dense_format=WeightFormat.BF16,
        is_exact=kind is PlanKind.EXACT,
        needs_prepare=needs_prepare,
        bytes_to_write=all_experts_bytes(kind) if needs_prepare else 0,
        budgets=budgets,
        context_tokens=context_tokens or script.context_tokens,
        slots_per_layer=[slots] * NUM_LAYERS,
        tiers=[
            TierShare(tier=tier, device=device, num_experts=num, bytes=num * slot_bytes)
            for tier, device, num in shares
        ],
        ram_parts={
            MemoryPart.DENSE: DENSE_BYTES,
            MemoryPart.EXPERTS: in_ram * slot_bytes,
            MemoryPart.KV_CACHE: KV_BYTES,
            MemoryPart.WORK: _WORK_BYTES,
        },
        ram_bytes=_FIXED_BYTES + in_ram * slot_bytes,
        min_ram_bytes=min_ram_bytes,
        all_ram_bytes=all_ram_bytes,
        base_bytes=_BASE_BYTES,
        forecast=_forecast(script, drive_bytes_per_token),
        reasons=[where, _writing_reason(kind, needs_prepare)],
        problem=_budget_problem(budget, min_ram_bytes),
    )


def _writing_reason(kind: PlanKind, needs_prepare: bool) -> Reason:
    if not needs_prepare:
        return Reason(code=ReasonCode.NOTHING_WRITTEN)
    return Reason(code=ReasonCode.WRITES_ONCE, parameters={"size_bytes": all_experts_bytes(kind)})


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
