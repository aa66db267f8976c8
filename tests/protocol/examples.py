"""One example of each message; run as a module it prints the golden file."""

import sys

from runtime.protocol.chat import (
    ChatMessage,
    FinishReason,
    GenerationStats,
    Role,
    SamplingSettings,
)
from runtime.protocol.engine_messages import EngineFetched, EnginePart, FetchEngine
from runtime.protocol.figure_messages import Figure, FigureUnit, StatedFigures
from runtime.protocol.framing import encode
from runtime.protocol.hub import HubOutlook, HubSketch
from runtime.protocol.hub_messages import (
    ForecastModels,
    HubConfigsRead,
    ModelsForecast,
)
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    BudgetsAdapted,
    BudgetsPlanned,
    BudgetsSet,
    CancelAccepted,
    CancelRequest,
    CommandFailed,
    CountTokens,
    DescribeMachine,
    FindModels,
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    HeartbeatSent,
    InspectModel,
    LoadCancelled,
    LoadModel,
    LoadProgressed,
    MachineDescribed,
    ModelInspected,
    ModelLoaded,
    ModelPlanned,
    ModelPrepared,
    ModelsFound,
    ModelsSearched,
    ModelWeighed,
    OpenSession,
    PlanBudgets,
    PlanModel,
    PrefillProgressed,
    PrepareCancelled,
    PrepareModel,
    PreparePhase,
    PrepareProgressed,
    RootSearched,
    RuntimeFailed,
    RuntimeStopped,
    SearchCancelled,
    SessionOpened,
    SetBudgets,
    StartGeneration,
    StopRuntime,
    TelemetrySampled,
    TelemetryWatched,
    TokensCounted,
    TokensGenerated,
    WatchTelemetry,
    WeighModel,
)
from runtime.protocol.model import (
    LoadedModel,
    LoadStage,
    MixedExperts,
    ModelReport,
    PreparedCopy,
    Suitability,
    SuitabilityRating,
    TierShare,
)
from runtime.protocol.plan import (
    BudgetCurve,
    MemoryPart,
    PlacementPlan,
    PlanChoice,
    PlanKind,
    Reason,
    ReasonCode,
)
from runtime.protocol.search import DeletionObstacle, FolderWeight, RootState
from runtime.protocol.telemetry import (
    ExpertMap,
    HintCount,
    MachineStrain,
    NoteCode,
    RateLimits,
    RuntimeNote,
    TelemetrySample,
)
from runtime.protocol.update_messages import (
    CheckForUpdate,
    FetchUpdate,
    ProgramUpdate,
    UpdateChecked,
    UpdateFetched,
)
from runtime.protocol.values import (
    Budgets,
    EnergyEstimate,
    EnergyPart,
    Forecast,
    HitsBasis,
    Tier,
    TierCount,
    WeightFormat,
)
from tests.protocol.hub_examples import ERROR, HUB_COMMANDS, HUB_EVENTS
from tests.protocol.machine_examples import FIGURE_COMMANDS, FIGURES_DESCRIBED, MACHINE

_CHAT = [
    ChatMessage(role=Role.SYSTEM, text="Be kind."),
    ChatMessage(role=Role.USER, text="Bonjour 🥐"),
    ChatMessage(role=Role.ASSISTANT, text="Salut", token_ids=[0, 127, 128, 65536], thinking="hm"),
]
_BUDGETS = Budgets(ram_bytes=8 << 30, vram_bytes={"cuda:0": 1 << 30})
_COUNTS = [TierCount(tier=tier, hits=3, misses=2, bytes=1 << 33) for tier in Tier]
_FORECAST = Forecast(
    prompt_tokens_per_s_low=100.0,
    prompt_tokens_per_s_high=200.5,
    decode_tokens_per_s_low=10.0,
    decode_tokens_per_s_high=20.0,
    drive_bytes_per_token=0.0,
    basis="modelled",
    prompt_tokens_per_s=150.0,
    decode_tokens_per_s=15.0,
    hit_ratio=0.75,
    hits_basis=HitsBasis.OWN,
    drive_s_per_token=0.01,
    speed_ratio=0.9,
    joules_per_token=4.5,
)
_SHARE = TierShare(tier=Tier.RAM, device="cpu", num_experts=64, bytes=1 << 30)
_COPY = PreparedCopy(folder="/prepared", expert_format=WeightFormat.Q4_G32, size_bytes=5)
_REPORT = ModelReport(
    folder="/models/a",
    name="a",
    model_type="qwen3_moe",
    fingerprint="f0",
    licence="apache-2.0",
    problems=[ERROR],
    real_folder="/drive/a",
    notes=[ERROR],
    num_layers=2,
    stored_format=WeightFormat.BF16,
    published_bits=8,
    gguf_kinds=["Q4_K", "Q6_K"],
    mixed_experts=MixedExperts(
        format_bytes={WeightFormat.Q4K_G32: 9, WeightFormat.Q8_G32: 3},
        bits=5.5,
        records_bytes=4096,
        slot_bytes=[2048, 4096],
    ),
    prepared=[_COPY],
    suitability=Suitability(
        rating=SuitabilityRating.WELL,
        segment_ratio=0.5,
        hit_ratios=[0.5, 0.75, 0.875],
        basis=HitsBasis.OWN,
        num_tokens=300,
    ),
)
_PLAN = PlacementPlan(
    kind=PlanKind.FOUR_BIT,
    model_folder="/models/a",
    model_fingerprint="f0",
    store_folder="/prepared",
    expert_format=WeightFormat.Q4_G32,
    dense_format=WeightFormat.BF16,
    is_exact=False,
    needs_prepare=True,
    bytes_to_write=7,
    budgets=_BUDGETS,
    context_tokens=4096,
    slots_per_layer=[8, 9],
    tiers=[_SHARE],
    ram_parts=dict.fromkeys(MemoryPart, 1),
    ram_bytes=4,
    min_ram_bytes=3,
    all_ram_bytes=5,
    base_bytes=6,
    forecast=_FORECAST,
    reasons=[Reason(code=ReasonCode.WRITES_ONCE, parameters={"bytes": 7})],
    problem=ERROR,
    choice=PlanChoice.FITS_IN_RAM,
)
_MODEL = LoadedModel(
    folder="/models/a",
    name="a",
    model_type="qwen3_moe",
    is_exact=True,
    expert_format=WeightFormat.BF16,
    context_tokens=4096,
    tiers=[_SHARE],
    base_bytes=1,
    budget_bytes=2,
    load_s=0.5,
    kernels="reference",
    mean_bits=5.5,
)
EXAMPLE_STATS = GenerationStats(
    prompt_tokens=10,
    reused_tokens=4,
    generated_tokens=3,
    ttft_s=0.5,
    prefill_s=0.25,
    decode_s=1.5,
    prompt_tokens_per_s=24.0,
    decode_tokens_per_s=2.0,
    seed=42,
    tiers=_COUNTS,
    drive_bytes_read=1 << 33,
    seconds={"compute": 1.0, "drive_wait": 0.5, "other": 0.25},
    base_bytes=1,
    budget_bytes=2,
    peak_bytes=3,
    context_tokens=4096,
    context_used_tokens=13,
    energy=EnergyEstimate(
        total_j=30.0,
        parts=[EnergyPart(source="rapl:package", joules=30.0, is_measured=True)],
    ),
    predicted=_FORECAST,
    thinking_s=1.5,
    decode_expert_misses=7,
    usual_tokens_per_s=2.5,
    drive_bytes_written=4096,
)
_SAMPLE = TelemetrySample(
    interval_s=0.1,
    num_dropped=2,
    num_tokens=1,
    decode_tokens_per_s=10.0,
    tiers=_COUNTS,
    drive_bytes_read=0,
    seconds={"compute": 0.1},
    resident_bytes=5,
    ram_by_kind={"dense": 1},
    vram_by_kind={"experts": 3},
    link_bytes=7,
    ram_bytes_read=8,
    limits=RateLimits(ram_read=4e10, link=1e10, drive=3e9),
    energy=[EnergyPart(source="nvml:0", joules=1.5, is_measured=True)],
    hints=HintCount(useful=3, late=2, wasted=1),
    strain=MachineStrain(
        own_bytes_written=9,
        drive_bytes_written=10,
        drive_temperature_c=41.5,
        processor_temperature_c=None,
        card_temperature_c=60.0,
    ),
    experts=ExpertMap(
        num_layers=1,
        num_experts=2,
        use=bytes([0, 255]),
        tier=bytes([0, 2]),
        bits=bytes([16, 4]),
        layer_hits=bytes([128, 102, 25]),
    ),
    notes=[
        RuntimeNote(code=NoteCode.EXPERTS_LOADED, parameters={"num_experts": 2, "seconds": 0.5}),
        RuntimeNote(code=NoteCode.CARD_UNPACKS),
        RuntimeNote(code=NoteCode.CARD_STARTS_PIECES),
        RuntimeNote(code=NoteCode.CARD_FULL, parameters={"old_bytes": 9, "new_bytes": 5}),
        RuntimeNote(
            code=NoteCode.DRIVE_STALLED,
            parameters={"file": "/m/a", "offset_bytes": 1, "layer": 2, "expert": 3, "seconds": 5.0},
        ),
    ],
)

_UPDATE = ProgramUpdate(
    version="0.2.0", notes="More models.", file="larder.deb", size_bytes=9, sha256="0" * 64
)
COMMANDS: list[AnyCommand] = [
    OpenSession(request_id=1, protocol_version=1, client_name="larder 0.1.0"),
    InspectModel(request_id=2, folder="/models/größe"),
    FindModels(request_id=12, roots=["/models", "/größe"]),
    WeighModel(request_id=13, folder="/models/a"),
    PlanModel(
        request_id=3,
        folder="/models/a",
        budgets=_BUDGETS,
        context_tokens=4096,
        kind=PlanKind.SIX_BIT,
    ),
    PlanBudgets(request_id=3, folder="/models/a", kind=PlanKind.EXACT, context_tokens=4096),
    ForecastModels(
        request_id=18,
        models=[
            HubSketch(config="{}"),
            HubSketch(outline="/cache/a.gguf", gguf_label="Q4_K_M", size_bytes=7),
        ],
        folder="/models",
        budgets=_BUDGETS,
        context_tokens=4096,
    ),
    PrepareModel(
        request_id=4,
        folder="/models/a",
        expert_format=WeightFormat.Q8_G32,
        output_folder="/prepared",
        mix_bytes=1 << 33,
        calibration_text="/texts/mine.txt",
    ),
    LoadModel(request_id=5, plan=_PLAN),
    StartGeneration(
        request_id=6, conversation=_CHAT, sampling=SamplingSettings(seed=1, stop=["\n\n"])
    ),
    CountTokens(request_id=7, conversation=_CHAT),
    CancelRequest(request_id=8, target_request_id=6),
    DescribeMachine(request_id=9, folders=["/models"], is_thorough=True),
    *FIGURE_COMMANDS,
    WatchTelemetry(request_id=10, interval_s=0.1),
    SetBudgets(request_id=11, budgets=_BUDGETS),
    *HUB_COMMANDS,
    CheckForUpdate(
        request_id=18,
        address="https://versions.example/larder",
        key="AAAA",
        version="0.1.0",
        package="linux-deb",
    ),
    FetchUpdate(
        request_id=19,
        address="https://versions.example/larder",
        update=_UPDATE,
        folder="/downloads",
    ),
    FetchEngine(
        request_id=20,
        parts=[
            EnginePart(
                file="torch.whl", url="https://w.example/t.whl", size_bytes=9, sha256="0" * 64
            )
        ],
        folder="/data/engine",
    ),
    StopRuntime(request_id=1 << 40),
]
EVENTS: list[AnyEvent] = [
    SessionOpened(request_id=1, protocol_version=1, runtime_version="0.1.0", process_id=4242),
    ModelInspected(request_id=2, report=_REPORT),
    ModelsFound(request_id=12, root="/models", reports=[_REPORT], num_folders=7),
    RootSearched(
        request_id=12,
        root="/models",
        state=RootState.THERE,
        num_models=1,
        num_unreadable=3,
        is_complete=True,
    ),
    ModelsSearched(request_id=12),
    SearchCancelled(request_id=12),
    ModelWeighed(
        request_id=13,
        weight=FolderWeight(
            folder="/models/a",
            files=["/models/a/b.gguf"],
            num_bytes=5,
            num_files=2,
            link_target="/drive/a",
            obstacle=DeletionObstacle.UNREADABLE,
        ),
    ),
    ModelPlanned(
        request_id=3,
        report=_REPORT,
        plans=[_PLAN],
        recommended=PlanKind.EXACT,
        stated=StatedFigures(
            figures=[Figure(name="num_threads", unit=FigureUnit.COUNT, stated=2.0)],
            file="/settings/machine.json",
        ),
    ),
    BudgetsPlanned(
        request_id=3,
        curve=BudgetCurve(
            kind=PlanKind.EXACT,
            device="cuda:0",
            num_experts=8,
            vram_budgets=[0, 5],
            ram_budgets=[7],
            automatic_vram=5,
            automatic_ram=[7, 6],
            num_in_vram=[0, 3],
            num_in_ram=[4, 4],
            context_tokens=[512, 4096],
            prompt_tokens_per_s_low=[1.0, 2.0],
            prompt_tokens_per_s_high=[3.0, 4.0],
            decode_tokens_per_s_low=[0.5, 1.5],
            decode_tokens_per_s_high=[2.5, 3.5],
            drive_bytes_per_token=[9.0, 0.0],
        ),
    ),
    BudgetsPlanned(request_id=3, curve=None),
    ModelsForecast(
        request_id=18,
        forecasts=[
            HubOutlook(forecast=_PLAN.forecast, is_on_drive=True),
            HubOutlook(is_too_large=True),
        ],
        advised=0,
    ),
    HubConfigsRead(request_id=19, configs=["{}", ""]),
    PrepareProgressed(
        request_id=4,
        done_bytes=1,
        total_bytes=2,
        bytes_per_s=0.5,
        phase=PreparePhase.READING_TEXT,
    ),
    PrepareProgressed(
        request_id=4,
        done_bytes=5,
        total_bytes=18,
        bytes_per_s=0.125,
        phase=PreparePhase.TRYING_PARTS,
    ),
    ModelPrepared(
        request_id=4, folder="/prepared", expert_format=WeightFormat.Q8_G32, size_bytes=9
    ),
    PrepareCancelled(request_id=4, kept_bytes=5),
    LoadProgressed(request_id=5, stage=LoadStage.EXPERTS, done_bytes=1, total_bytes=2),
    ModelLoaded(request_id=5, model=_MODEL),
    LoadCancelled(request_id=5),
    GenerationStarted(request_id=6, prompt_tokens=10, reused_tokens=4, context_tokens=4096),
    PrefillProgressed(request_id=6, done_tokens=3, total_tokens=6),
    TokensGenerated(request_id=6, token_ids=[1, 2], text="Paris 🥐", thinking="hm"),
    GenerationFinished(request_id=6, reason=FinishReason.STOP, stats=EXAMPLE_STATS),
    GenerationCancelled(request_id=6, stats=EXAMPLE_STATS),
    TokensCounted(request_id=7, prompt_tokens=10, context_tokens=4096),
    CancelAccepted(request_id=8, was_running=True),
    MachineDescribed(request_id=9, machine=MACHINE),
    FIGURES_DESCRIBED,
    TelemetryWatched(request_id=10, interval_s=0.1),
    BudgetsSet(request_id=11, model=_MODEL, plan=_PLAN),
    *HUB_EVENTS,
    UpdateChecked(request_id=18, update=_UPDATE),
    UpdateChecked(request_id=18),
    UpdateFetched(request_id=19, path="/downloads/larder.deb"),
    EngineFetched(request_id=20, folder="/data/engine", version="2.13.0+cu130", card="A card"),
    RuntimeStopped(request_id=1 << 40),
    CommandFailed(request_id=5, error=ERROR),
    TelemetrySampled(sample=_SAMPLE),
    BudgetsAdapted(model=_MODEL, plan=_PLAN),
    HeartbeatSent(uptime_s=2.0),
    RuntimeFailed(error=ERROR),
]


def golden_lines() -> list[str]:
    """Return a line for each message: its name and its frame in hexadecimal digits."""
    messages: list[AnyCommand | AnyEvent] = [*COMMANDS, *EVENTS]
    return [f"{type(message).__name__} {encode(message).hex()}" for message in messages]


if __name__ == "__main__":
    sys.stdout.write("\n".join([*golden_lines(), ""]))
