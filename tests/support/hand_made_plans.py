"""Placement plans without the planner: for engines that are given exactly what a test wants."""

from pathlib import Path

import msgspec

from runtime.inspect.folder import inspect_folder
from runtime.prepare.prepare import prepare_model
from runtime.protocol.model import ModelReport, TierShare
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, Forecast, Tier, WeightFormat
from runtime.spec.footprint import (
    PREFILL_CHUNK_TOKENS,
    dense_bytes,
    host_work_bytes,
    kv_cache_bytes,
    kv_layer_bytes,
    work_bytes,
)
from runtime.spec.model import ModelSpec
from runtime.spec.ram_slots import Records, ram_experts_bytes
from runtime.spec.tensors import expert_layout

FORECAST = Forecast(
    prompt_tokens_per_s_low=10,
    prompt_tokens_per_s_high=20,
    decode_tokens_per_s_low=1,
    decode_tokens_per_s_high=2,
    drive_bytes_per_token=0,
    basis="assumed",
)


def prepared_plan(
    folder: Path,
    copy_folder: Path,
    expert_format: WeightFormat,
    context_tokens: int = 192,
    num_slots: int | None = None,
) -> PlacementPlan:
    """Return a plan over a copy in another format, which is written into ``copy_folder``."""
    prepare_model(inspect_folder(str(folder)), expert_format, str(copy_folder))
    kind = PlanKind.EIGHT_BIT if expert_format is WeightFormat.Q8_G32 else PlanKind.FOUR_BIT
    return msgspec.structs.replace(
        exact_plan(folder, num_slots, context_tokens),
        kind=kind,
        store_folder=str(copy_folder),
        expert_format=expert_format,
        is_exact=False,
    )


def exact_plan(
    folder: Path,
    num_slots: int | None = None,
    context_tokens: int = 192,
    chunk_tokens: int = PREFILL_CHUNK_TOKENS,
) -> PlacementPlan:
    """Return a plan that uses the published files, with the same number of slots in each layer.

    The budget holds exactly what loading takes; ``chunk_tokens`` is what the work is sized for.
    """
    inspection = inspect_folder(str(folder))
    report, spec = inspection.report, inspection.spec
    assert spec is not None
    assert report.stored_format is not None
    records = _records(report, spec)
    slots = [spec.num_experts if num_slots is None else num_slots] * len(spec.moe_layers)
    ram_bytes = (
        dense_bytes(inspection.tensors.values())
        + ram_experts_bytes(spec, records, slots)
        + kv_cache_bytes(spec, context_tokens)
        + work_bytes(spec, context_tokens, min(chunk_tokens, context_tokens))
    )
    return PlacementPlan(
        kind=PlanKind.EXACT,
        model_folder=str(folder),
        model_fingerprint=report.fingerprint,
        store_folder=str(folder),
        expert_format=report.stored_format,
        dense_format=report.stored_format,
        is_exact=True,
        needs_prepare=False,
        bytes_to_write=0,
        budgets=Budgets(ram_bytes=ram_bytes),
        context_tokens=context_tokens,
        slots_per_layer=slots,
        tiers=[
            TierShare(
                tier=Tier.RAM,
                device="cpu",
                num_experts=sum(slots),
                bytes=records.largest_bytes * sum(slots),
            )
        ],
        ram_parts={},
        ram_bytes=ram_bytes,
        min_ram_bytes=ram_bytes,
        all_ram_bytes=ram_bytes,
        base_bytes=0,
        forecast=FORECAST,
        reasons=[],
    )


def _records(report: ModelReport, spec: ModelSpec) -> Records:
    """Return what the experts of the published files take."""
    mixed = report.mixed_experts
    if mixed is not None:
        return Records(mixed.records_bytes, tuple(mixed.slot_bytes))
    assert report.stored_format is not None
    layout = expert_layout(report.stored_format, spec.hidden_size, spec.expert_width)
    return Records.alike(layout.record_bytes, spec)


def device_plan(
    folder: Path,
    ram_slots: int,
    vram_slots: int,
    device: str = "simulated:0",
    chunk_tokens: int = PREFILL_CHUNK_TOKENS,
    ram_kv_layers: tuple[int, ...] = (),
) -> PlacementPlan:
    """Return an exact plan with the dense part and so many experts of each layer on a device.

    Both budgets hold exactly what loading takes; keys and values of ``ram_kv_layers`` lie in RAM.
    """
    plan = exact_plan(folder, ram_slots, chunk_tokens=chunk_tokens)
    inspection = inspect_folder(str(folder))
    spec = inspection.spec
    assert spec is not None
    records = _records(inspection.report, spec)
    chunk = min(chunk_tokens, plan.context_tokens)
    above = [vram_slots] * len(spec.moe_layers)
    sizes = kv_layer_bytes(spec, plan.context_tokens)
    moved_bytes = sum(sizes[layer] for layer in ram_kv_layers)
    ram_parts = {
        **({MemoryPart.KV_CACHE: moved_bytes} if moved_bytes else {}),
        MemoryPart.EXPERTS: ram_experts_bytes(spec, records, plan.slots_per_layer),
        MemoryPart.WORK: host_work_bytes(spec, chunk),
    }
    vram_parts = {
        MemoryPart.DENSE: dense_bytes(inspection.tensors.values()),
        MemoryPart.KV_CACHE: sum(sizes) - moved_bytes,
        MemoryPart.WORK: work_bytes(spec, plan.context_tokens, chunk),
        MemoryPart.EXPERTS: records.largest_bytes * sum(above),
    }
    ram_bytes, vram_bytes = sum(ram_parts.values()), sum(vram_parts.values())
    return msgspec.structs.replace(
        plan,
        budgets=Budgets(ram_bytes=ram_bytes, vram_bytes={device: vram_bytes}),
        ram_parts=ram_parts,
        ram_bytes=ram_bytes,
        device=device,
        vram_slots_per_layer=above,
        vram_parts=vram_parts,
        vram_bytes=vram_bytes,
        ram_kv_layers=list(ram_kv_layers),
    )
