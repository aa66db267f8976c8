"""Machines and models as the planner sees them, with sizes that follow from the architecture."""

from pathlib import Path

from runtime.inspect.folder import inspect_folder
from runtime.protocol.machine import DeviceReport, DriveReport, MachineReport, Measured
from runtime.protocol.model import ModelReport, PreparedCopy
from runtime.protocol.values import WeightFormat
from runtime.spec.attention import AttentionSpec
from runtime.spec.blocks import NormSpec, Routing
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import dense_bytes
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import matrix_bytes
from tests.support.specs import grouped_attention

GIB = 1024**3
FOLDER = "/models/some-moe"


def machine(
    *,
    total_gib: float = 32,
    available_gib: float = 24,
    limit_gib: float | None = None,
    ram_gb_per_s: float | None = 20,
    drive_gb_per_s: float | None = 3,
    kernels: str = "native-avx2",
    devices: tuple[DeviceReport, ...] = (),
) -> MachineReport:
    """Return a PC; rates that are None were not measured."""

    def measured(value: float | None, unit: float = 1e9) -> Measured | None:
        return None if value is None else Measured(value=value * unit, method="profile")

    drive = DriveReport(
        folder=FOLDER,
        file_system="ext4",
        free_bytes=500 * GIB,
        total_bytes=1000 * GIB,
        read_bytes_per_s=measured(drive_gb_per_s),
    )
    return MachineReport(
        operating_system="Linux",
        cpu_name="some processor",
        num_physical_cores=8,
        num_logical_cores=16,
        instruction_set="avx2",
        ram_total=Measured(value=total_gib * GIB, method="profile"),
        ram_available=Measured(value=available_gib * GIB, method="profile"),
        ram_limit=measured(limit_gib, GIB),
        ram_read_bytes_per_s=measured(ram_gb_per_s),
        devices=list(devices),
        drives=[drive],
        kernels=kernels,
    )


def spec(
    *,
    hidden_size: int = 2048,
    num_layers: int = 48,
    num_dense_layers: int = 0,
    num_experts: int = 128,
    top_k: int = 8,
    expert_width: int = 768,
    max_context_tokens: int = 40960,
    is_tied: bool = False,
) -> ModelSpec:
    """Return an architecture; by default the shape of a 30-billion-parameter model."""
    return ModelSpec(
        model_type="qwen3_moe",
        hidden_size=hidden_size,
        num_layers=num_layers,
        attention=grouped_attention(
            num_layers, max(1, hidden_size // 64), max(1, hidden_size // 512), 64, 1e6
        ),
        vocabulary_size=151936,
        max_context_tokens=max_context_tokens,
        norm=NormSpec(1e-6),
        is_tied=is_tied,
        moe_layers=tuple(range(num_dense_layers, num_layers)),
        num_experts=num_experts,
        routing=Routing(top_k=top_k, is_normalised=True),
        expert_width=expert_width,
        dense_width=hidden_size * 3,
    )


def report(
    of: ModelSpec,
    *,
    stored_format: WeightFormat | None = WeightFormat.BF16,
    prepared: tuple[WeightFormat, ...] = (),
) -> ModelReport:
    """Return the report of a checkpoint of this architecture."""
    weight_bytes = 4 if stored_format is WeightFormat.F32 else 2
    hidden = of.hidden_size
    heads = of.attention[0]
    assert isinstance(heads, AttentionSpec)
    kv_width = heads.num_kv_heads * heads.head_dim
    attention = of.num_layers * hidden * (2 * heads.num_heads * heads.head_dim + 2 * kv_width)
    blocks = (of.num_layers - len(of.moe_layers)) * 3 * hidden * of.dense_width
    dense = attention + blocks + (1 if of.is_tied else 2) * of.vocabulary_size * hidden
    expert = sum(
        matrix_bytes(stored_format or WeightFormat.BF16, rows, columns)
        for rows, columns in ((of.expert_width, hidden),) * 2 + ((hidden, of.expert_width),)
    )
    active = len(of.moe_layers) * of.top_k * 3 * hidden * of.expert_width
    return ModelReport(
        folder=FOLDER,
        name="Some MoE",
        model_type=of.model_type,
        fingerprint="f1",
        licence="apache-2.0",
        problems=[],
        num_layers=of.num_layers,
        num_moe_layers=len(of.moe_layers),
        num_experts=of.num_experts,
        top_k=of.top_k,
        hidden_size=hidden,
        vocabulary_size=of.vocabulary_size,
        max_context_tokens=of.max_context_tokens,
        num_active_parameters=dense + active,
        stored_format=stored_format,
        dense_bytes=dense * weight_bytes,
        expert_bytes=expert,
        kv_bytes_per_token=of.num_layers * 2 * kv_width * 4,
        prepared=[
            PreparedCopy(folder=f"/prepared/{item}", expert_format=item, size_bytes=7 * GIB)
            for item in prepared
        ],
    )


def facts(
    of: ModelSpec,
    *,
    stored_format: WeightFormat | None = WeightFormat.BF16,
    prepared: tuple[WeightFormat, ...] = (),
) -> ModelFacts:
    """Return what the planner knows of such a checkpoint."""
    about = report(of, stored_format=stored_format, prepared=prepared)
    return ModelFacts(about, of, about.dense_bytes + about.dense_bytes // 1000)


def facts_of(folder: Path) -> ModelFacts:
    """Return what the planner knows of a model on the drive."""
    inspection = inspect_folder(str(folder))
    assert inspection.spec is not None
    return ModelFacts(inspection.report, inspection.spec, dense_bytes(inspection.tensors.values()))
