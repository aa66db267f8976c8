"""What inspecting a model folder found, and what loading it made."""

import enum

from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorReport
from runtime.protocol.values import HitsBasis, Tier, Value, WeightFormat


class PreparedCopy(Value):
    """A prepared copy of a model that already lies on this PC."""

    folder: str
    expert_format: WeightFormat
    """Of all experts, or of the most."""
    size_bytes: int
    mix_bits: float = 0.0
    """Of a mix the mean bits of a weight of an expert, scales included; else 0, and so is what
    follows."""
    records_bytes: int = 0
    """What all experts take."""
    slot_bytes: list[int] = []
    """Of the largest expert of each MoE layer, which a slot of that layer has to have."""
    dense_ram_bytes: int = 0
    """What everything else takes in RAM."""


class MixedExperts(Value):
    """What the experts of a published model take in memory if their matrices have several formats.

    Those of a layer may have others than those of the next, and what leads down another than gate
    and up.
    """

    format_bytes: dict[WeightFormat, int]
    """What all their matrices take in each format, that of the most weights first."""
    bits: float
    """The mean of a weight, scales included."""
    records_bytes: int
    """What all experts take."""
    slot_bytes: list[int]
    """Of the largest expert of each MoE layer, which a slot of that layer has to have."""


class SuitabilityRating(enum.StrEnum):
    """How well a model bears to have most of its experts elsewhere."""

    WELL = "well"
    FAIRLY = "fairly"
    BADLY = "badly"


class Suitability(Value):
    """How much tokens in a row choose the same experts, by published definitions.

    The more they do, the more a small memory of experts is worth.
    """

    rating: SuitabilityRating
    segment_ratio: float
    """Segment routing best performance with 16 tokens: how well it can be told, for 16 tokens in a
    row at once, which experts all of them choose; 0 to 1."""
    hit_ratios: list[float] = []
    """Segment cache best hit rate with 16 tokens: hits of a cache of 1, 2 and 3 times the experts
    that a token uses which knows the next 16 tokens; empty where nobody recorded it."""
    basis: HitsBasis = HitsBasis.FAMILY
    num_tokens: int = 0
    """Generated tokens that were counted on this PC."""


class ModelReport(Value):
    """Everything the headers of a model folder say; made without reading weights.

    ``problems`` is empty exactly if the model can be planned and loaded. Sizes are 0 where the
    problems made them unknowable.
    """

    folder: str
    name: str
    model_type: str
    fingerprint: str
    """Changes when config, shard list, sizes or tensor headers change."""
    licence: str
    problems: list[ErrorReport]
    real_folder: str = ""
    """Where links on the way to ``folder`` lead; empty where there are none."""
    notes: list[ErrorReport] = []
    """Things a person should know that do not prevent running."""

    num_layers: int = 0
    num_moe_layers: int = 0
    num_experts: int = 0
    top_k: int = 0
    hidden_size: int = 0
    vocabulary_size: int = 0
    max_context_tokens: int = 0

    num_parameters: int = 0
    num_active_parameters: int = 0
    stored_format: WeightFormat | None = None
    mixed_experts: MixedExperts | None = None
    """Where experts have other formats beside ``stored_format``, which most of their weights have;
    else None."""
    published_bits: int = 0
    """Bits of a weight in the files, if they are fewer than those of ``stored_format``, to which
    it is widened while it is read; else 0."""
    gguf_kinds: list[str] = []
    """Of a model in GGUF files the kinds of its matrices, that of the most weights first."""
    file_bytes: int = 0
    num_shards: int = 0
    dense_bytes: int = 0
    """All weights that are not routed experts, as stored."""
    expert_bytes: int = 0
    """One routed expert, as stored; the mean where some are stored in more bits than others."""
    kv_bytes_per_token: int = 0
    prepared: list[PreparedCopy] = []
    sampling: SamplingSettings | None = None
    """What the model's makers recommend; None if they say nothing."""
    suitability: Suitability | None = None
    """None where nothing is known of the model or its family, or it has no experts."""

    @property
    def is_runnable(self) -> bool:
        """Whether nothing prevents this model from being planned."""
        return not self.problems


class TierShare(Value):
    """How much of a model a tier holds under a plan."""

    tier: Tier
    device: str
    """``cpu``, ``cuda:0``, ``simulated:0`` or, for the drive, the folder's device name."""
    num_experts: int
    bytes: int


class LoadStage(enum.StrEnum):
    """The parts of loading that take time."""

    START = "start"
    DENSE = "dense"
    EXPERTS = "experts"


class LoadedModel(Value):
    """A model that is ready to answer."""

    folder: str
    name: str
    model_type: str
    is_exact: bool
    expert_format: WeightFormat
    context_tokens: int
    tiers: list[TierShare]
    base_bytes: int
    """Resident size of the runtime before the first arena was made."""
    budget_bytes: int
    load_s: float
    kernels: str
    """Name of the kernels in use, for example ``native-avx2`` or ``reference``."""
    mean_bits: float = 0.0
    """Of a weight of an expert, scales included, where not all are in ``expert_format``; else 0."""
