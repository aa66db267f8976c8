"""Reports, plans, models and statistics with small figures, for tests of the window."""

import msgspec

from runtime.protocol.chat import GenerationStats
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.machine import MachineReport, Measured
from runtime.protocol.messages import RootSearched
from runtime.protocol.model import LoadedModel, ModelReport, TierShare
from runtime.protocol.plan import BudgetCurve, MemoryPart, PlacementPlan, PlanKind
from runtime.protocol.search import RootState
from runtime.protocol.telemetry import TelemetrySample
from runtime.protocol.values import (
    Budgets,
    EnergyEstimate,
    Forecast,
    Tier,
    TierCount,
    WeightFormat,
)

FOLDER = "/models/tiny"


def some_error(code: ErrorCode = ErrorCode.NOT_A_MODEL) -> ErrorReport:
    """Return an error with the parameters of ``NOT_A_MODEL``."""
    return ErrorReport(
        code=code, severity=Severity.MODEL, parameters={"folder": FOLDER, "reason": "a test"}
    )


def some_report(
    folder: str = FOLDER, name: str = "tiny", problems: tuple[ErrorReport, ...] = ()
) -> ModelReport:
    """Return a report of a model with 4 layers of 8 experts."""
    return ModelReport(
        folder=folder,
        name=name,
        model_type="qwen3_moe",
        fingerprint="f",
        licence="Apache-2.0",
        problems=list(problems),
        num_layers=4,
        num_moe_layers=4,
        num_experts=8,
        top_k=2,
        num_parameters=135_000_000,
        num_active_parameters=40_000_000,
        file_bytes=270 << 20,
        dense_bytes=70 << 20,
        expert_bytes=5 << 20,
    )


def some_searched(
    root: str,
    state: RootState = RootState.THERE,
    *,
    request_id: int = 1,
    is_complete: bool = True,
    num_unreadable: int = 0,
) -> RootSearched:
    """Return what a search that has gone through a place with one model says of it."""
    return RootSearched(
        request_id=request_id,
        root=root,
        state=state,
        num_models=1,
        num_unreadable=num_unreadable,
        is_complete=is_complete,
    )


def some_forecast(low: float = 19.0, high: float = 24.0) -> Forecast:
    """Return a forecast of the decode rate."""
    return Forecast(
        prompt_tokens_per_s_low=100.0,
        prompt_tokens_per_s_high=200.0,
        decode_tokens_per_s_low=low,
        decode_tokens_per_s_high=high,
        drive_bytes_per_token=0.0,
        basis="assumed",
    )


def some_tiers() -> list[TierShare]:
    """Return shares of RAM and drive."""
    return [
        TierShare(tier=Tier.RAM, device="cpu", num_experts=24, bytes=200 << 20),
        TierShare(tier=Tier.DRIVE, device="sda", num_experts=8, bytes=70 << 20),
    ]


def some_plan(
    kind: PlanKind = PlanKind.EXACT,
    *,
    folder: str = FOLDER,
    needs_prepare: bool = False,
    problem: ErrorReport | None = None,
    forecast: Forecast | None = None,
) -> PlacementPlan:
    """Return a plan for ``some_report``."""
    return PlacementPlan(
        kind=kind,
        model_folder=folder,
        model_fingerprint="f",
        store_folder=folder,
        expert_format=WeightFormat.BF16 if kind is PlanKind.EXACT else WeightFormat.Q8_G32,
        dense_format=WeightFormat.BF16,
        is_exact=kind is PlanKind.EXACT,
        needs_prepare=needs_prepare,
        bytes_to_write=(100 << 20) if needs_prepare else 0,
        budgets=Budgets(),
        context_tokens=4096,
        slots_per_layer=[6, 6, 6, 6],
        tiers=some_tiers(),
        ram_parts={MemoryPart.DENSE: 70 << 20, MemoryPart.EXPERTS: 130 << 20},
        ram_bytes=200 << 20,
        min_ram_bytes=120 << 20,
        all_ram_bytes=270 << 20,
        base_bytes=250 << 20,
        forecast=forecast,
        reasons=[],
        problem=problem,
    )


def some_loaded(folder: str = FOLDER, name: str = "tiny") -> LoadedModel:
    """Return a loaded model."""
    return LoadedModel(
        folder=folder,
        name=name,
        model_type="qwen3_moe",
        is_exact=True,
        expert_format=WeightFormat.BF16,
        context_tokens=4096,
        tiers=some_tiers(),
        base_bytes=250 << 20,
        budget_bytes=200 << 20,
        load_s=1.0,
        kernels="reference",
    )


def some_stats(
    *,
    decode_tokens_per_s: float = 21.4,
    used_tokens: int = 120,
    energy_j: float | None = 36.0,
    predicted: Forecast | None = None,
) -> GenerationStats:
    """Return statistics of one answer."""
    return GenerationStats(
        prompt_tokens=100,
        reused_tokens=60,
        generated_tokens=20,
        ttft_s=0.8,
        prefill_s=0.7,
        decode_s=1.0,
        prompt_tokens_per_s=57.0,
        decode_tokens_per_s=decode_tokens_per_s,
        seed=7,
        tiers=[
            TierCount(tier=Tier.RAM, hits=98, misses=2, bytes=1000),
            TierCount(tier=Tier.DRIVE, hits=2, misses=0, bytes=20),
        ],
        drive_bytes_read=5 << 20,
        seconds={"compute": 0.9},
        base_bytes=250 << 20,
        budget_bytes=200 << 20,
        peak_bytes=190 << 20,
        context_tokens=4096,
        context_used_tokens=used_tokens,
        energy=EnergyEstimate(total_j=energy_j, parts=[]),
        predicted=predicted,
    )


def some_machine() -> MachineReport:
    """Return a PC without accelerators."""
    return MachineReport(
        operating_system="test",
        cpu_name="test",
        num_physical_cores=2,
        num_logical_cores=2,
        instruction_set="avx2",
        ram_total=Measured(value=16e9, method="test"),
        ram_available=Measured(value=12e9, method="test"),
        ram_limit=None,
        ram_read_bytes_per_s=None,
        devices=[],
        drives=[],
        kernels="reference",
    )


def some_sample(num_tokens: int = 1) -> TelemetrySample:
    """Return a measurement of one interval."""
    return TelemetrySample(
        interval_s=0.1,
        num_dropped=0,
        num_tokens=num_tokens,
        decode_tokens_per_s=10.0,
        tiers=[],
        drive_bytes_read=0,
        seconds={},
        resident_bytes=0,
        ram_by_kind={},
    )


def resting_sample(interval_s: float = 2.0) -> TelemetrySample:
    """Return a measurement of an engine that has nothing to do."""
    sample: TelemetrySample = msgspec.structs.replace(some_sample(0), interval_s=interval_s)
    return sample


def some_curve(kind: PlanKind = PlanKind.EXACT, device: str = "cuda:0") -> BudgetCurve:
    """Return a curve over VRAM of 0, 100, 200 and RAM of 1000, 2000 bytes; more is faster."""
    rates = [1.0, 2.0, 10.0, 20.0, 20.0, 40.0]
    return BudgetCurve(
        kind=kind,
        device=device,
        num_experts=32,
        vram_budgets=[0, 100, 200],
        ram_budgets=[1000, 2000],
        automatic_vram=180,
        automatic_ram=[2000, 1500, 1100],
        num_in_vram=[0, 0, 4, 4, 16, 16],
        num_in_ram=[8, 32, 8, 28, 8, 16],
        context_tokens=[512, 2048, 1024, 4096, 1024, 4096],
        prompt_tokens_per_s_low=[10 * rate for rate in rates],
        prompt_tokens_per_s_high=[20 * rate for rate in rates],
        decode_tokens_per_s_low=rates,
        decode_tokens_per_s_high=[2 * rate for rate in rates],
        drive_bytes_per_token=[4e6, 0.0, 3e6, 0.0, 1e6, 0.0],
    )
