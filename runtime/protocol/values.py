"""Closed sets and small values that several messages share."""

import enum
import typing

import msgspec


class Tier(enum.StrEnum):
    """Where an expert lies, from hot to cold; screens keep this order."""

    VRAM = "vram"
    RAM = "ram"
    DRIVE = "drive"


class WeightFormat(enum.StrEnum):
    """How the weights of one matrix are stored, which is also how the kernels read them.

    The plain formats are row-major, as published. The others are our prepared ones: eight rows
    interleaved, one scale for each group of 32 or 16 weights of a row (see docs/formats.md).
    """

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_G32 = "q8_g32"
    Q4_G32 = "q4_g32"
    MXFP4 = "mxfp4"
    Q4A_G32 = "q4a_g32"
    Q6_G32 = "q6_g32"
    Q3_G16 = "q3_g16"
    Q2_G16 = "q2_g16"
    Q4K_G32 = "q4k_g32"
    Q6K_G16 = "q6k_g16"
    Q5K_G32 = "q5k_g32"
    Q3K_G16 = "q3k_g16"
    Q2K_G16 = "q2k_g16"


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every value that travels: immutable, fields given by name."""


class Budgets(Value):
    """What the person allows the model to take, in bytes.

    ``ram_bytes`` covers our arenas (experts, dense part, KV cache, work buffers); None lets the
    planner choose. ``vram_bytes`` maps a device id such as ``cuda:0`` or ``simulated:0`` to its
    budget: of a device that is not named the planner chooses, and 0 leaves it unused.
    """

    ram_bytes: int | None = None
    vram_bytes: dict[str, int] = {}


class TierCount(Value):
    """Expert look-ups that a tier answered, by count and by bytes."""

    tier: Tier
    hits: int
    misses: int
    bytes: int


class HitsBasis(enum.StrEnum):
    """Whose routing the predicted hits of an expert cache rest on."""

    OWN = "own"
    """The model's own, recorded while it answered on this PC."""
    FAMILY = "family"
    """That of models of the same family, recorded elsewhere."""
    ASSUMED = "assumed"
    """That of other models: a prior."""


class Forecast(Value):
    """Predicted speed as a band, with what the prediction rests on."""

    prompt_tokens_per_s_low: float
    prompt_tokens_per_s_high: float
    decode_tokens_per_s_low: float
    decode_tokens_per_s_high: float
    drive_bytes_per_token: float
    basis: str
    """``measured`` (this model ran on this PC before), ``modelled`` (from measured rates of this
    PC) or ``assumed`` (from priors)."""
    prompt_tokens_per_s: float = 0.0
    """The likeliest rate; the band is not even around it. 0 where nobody worked it out."""
    decode_tokens_per_s: float = 0.0
    hit_ratio: float = 1.0
    """Part of look-ups that find their expert above the drive."""
    hits_basis: HitsBasis = HitsBasis.ASSUMED
    drive_s_per_token: float = 0.0
    """Waiting for the drive, as the cost model has it: a part of the time of a token."""
    speed_ratio: float = 1.0
    """What the likeliest rate was multiplied with: measured by modelled speed of earlier runs."""
    joules_per_token: float = 0.0
    """Energy of a generated token; 0 where nobody worked it out."""


class EnergyEstimate(Value):
    """Energy of one generation in joules, by source; a source says whether it was measured."""

    total_j: float | None
    parts: list["EnergyPart"]


class EnergyPart(Value):
    """One term of an energy estimate."""

    source: str
    """For example ``rapl:package``, ``nvml:0``, ``drive-reads``, ``assumed-watts``."""
    joules: float
    is_measured: bool
