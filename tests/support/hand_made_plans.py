"""Placement plans without the planner: for engines that are given exactly what a test wants."""

from pathlib import Path

import msgspec

from runtime.inspect.folder import inspect_folder
from runtime.prepare.prepare import prepare_model
from runtime.protocol.model import TierShare
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, Forecast, Tier, WeightFormat
from runtime.spec.footprint import (
    PREFILL_CHUNK_TOKENS,
    dense_bytes,
    experts_bytes,
    kv_cache_bytes,
    work_bytes,
)
from runtime.spec.tensors import expert_layout

FORECAST = Forecast(
    prompt_tokens_per_s_low=10,
    prompt_tokens_per_s_high=20,
    decode_tokens_per_s_low=1,
    decode_tokens_per_s_high=2,
    drive_bytes_per_token=0,
    basis="assumed",
)


def prepared_plan(folder: Path, copy_folder: Path, expert_format: WeightFormat) -> PlacementPlan:
    """Return a plan over a copy in another format, which is written into ``copy_folder``."""
    prepare_model(inspect_folder(str(folder)), expert_format, str(copy_folder))
    kind = PlanKind.EIGHT_BIT if expert_format is WeightFormat.Q8_G32 else PlanKind.FOUR_BIT
    return msgspec.structs.replace(
        exact_plan(folder),
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
    layout = expert_layout(report.stored_format, spec.hidden_size, spec.expert_width)
    slots = [spec.num_experts if num_slots is None else num_slots] * len(spec.moe_layers)
    ram_bytes = (
        dense_bytes(inspection.tensors.values())
        + experts_bytes(layout, slots)
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
                bytes=experts_bytes(layout, slots),
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
