"""What the planner decided and why."""

import enum

from runtime.protocol.errors import ErrorReport
from runtime.protocol.model import TierShare
from runtime.protocol.values import Budgets, Forecast, Value, WeightFormat


class PlanChoice(enum.StrEnum):
    """The names of the choices a person is offered; each stands for the kind that fits here."""

    EXACT = "exact"
    """The published weights."""
    BALANCED = "balanced"
    """Fewer bits where that pays: what is recommended, else the most exact form of less than the
    published bits that is not much slower than the fastest."""
    FITS_IN_RAM = "fits_in_ram"
    """The most exact form that needs no drive, where the published weights do."""
    SMALLEST = "smallest"
    """The fewest bits that are worth a look here."""


class PlanKind(enum.StrEnum):
    """What the experts of a plan are stored in, the most exact first."""

    EXACT = "exact"
    """The published weights: used where they lie, or copied once if they are packed in an order
    that kernels do not read."""
    EIGHT_BIT = "eight_bit"
    SIX_BIT = "six_bit"
    FOUR_BIT = "four_bit"
    THREE_BIT = "three_bit"
    TWO_BIT = "two_bit"
    MIXED = "mixed"
    """More bits where a text showed that they count, fewer elsewhere."""


class ReasonCode(enum.StrEnum):
    """Why a plan is as it is, and how an answer was not; each has a sentence in ``sentences``."""

    FITS_IN_RAM = "fits_in_ram"
    FITS_IN_VRAM = "fits_in_vram"
    READS_FROM_DRIVE = "reads_from_drive"
    RAM_LIMITED_BY_FREE = "ram_limited_by_free"
    RAM_LIMITED_BY_CONTROL_GROUP = "ram_limited_by_control_group"
    RAM_LIMITED_BY_BUDGET = "ram_limited_by_budget"
    RAM_GIVEN_BACK = "ram_given_back"
    RAM_TAKEN_AGAIN = "ram_taken_again"
    CONTEXT_SHORTENED = "context_shortened"
    NOTHING_WRITTEN = "nothing_written"
    WRITES_ONCE = "writes_once"
    ALREADY_PREPARED = "already_prepared"
    ANSWERS_AS_PUBLISHED = "answers_as_published"
    ANSWERS_NEARLY_AS_PUBLISHED = "answers_nearly_as_published"
    ANSWERS_DIFFER_LITTLE = "answers_differ_little"
    ANSWERS_DIFFER = "answers_differ"
    ANSWERS_DIFFER_MUCH = "answers_differ_much"
    WEIGHTS_ARE_WIDENED = "weights_are_widened"
    BLOCKS_ARE_REPACKED = "blocks_are_repacked"
    SLOW_KERNELS = "slow_kernels"
    NO_GPU_USED = "no_gpu_used"
    HITS_FROM_OWN = "hits_from_own"
    HITS_FROM_FAMILY = "hits_from_family"
    HITS_ASSUMED = "hits_assumed"
    SUITS_WELL = "suits_well"
    SUITS_FAIRLY = "suits_fairly"
    SUITS_BADLY = "suits_badly"
    RAN_BEFORE = "ran_before"
    WHOLE_IN_MEMORY = "whole_in_memory"
    BEST_IN_MEMORY = "best_in_memory"
    BEST_NEARLY_IN_MEMORY = "best_nearly_in_memory"
    BEST_BY_SPEED = "best_by_speed"
    MORE_EXACT_SLOWER = "more_exact_slower"
    MORE_EXACT_TOO_LARGE = "more_exact_too_large"
    SMALLER_LESS_EXACT = "smaller_less_exact"
    ONLY_CHOICE = "only_choice"
    OTHER_GPU_UNUSED = "other_gpu_unused"
    FASTER_THAN_FORECAST = "faster_than_forecast"
    SLOWER_THAN_FORECAST = "slower_than_forecast"
    SLOWER_THAN_USUAL = "slower_than_usual"
    HOT_EXPERTS_IN_VRAM = "hot_experts_in_vram"
    VRAM_LIMITED_BY_FREE = "vram_limited_by_free"
    VRAM_LIMITED_BY_BUDGET = "vram_limited_by_budget"
    KV_IN_RAM = "kv_in_ram"
    VRAM_TOO_SMALL = "vram_too_small"


class Reason(Value):
    """One reason with the numbers that make it checkable."""

    code: ReasonCode
    parameters: dict[str, str | int | float] = {}


class MemoryPart(enum.StrEnum):
    """What the RAM budget is spent on."""

    DENSE = "dense"
    EXPERTS = "experts"
    KV_CACHE = "kv_cache"
    WORK = "work"


class PlacementPlan(Value):
    """One way to run one model on this machine: placement, formats, speed, memory, reasons.

    ``problem`` is None exactly if the plan can be loaded (after preparing, where
    ``needs_prepare``). With a problem, the placement shown is the smallest one.
    """

    kind: PlanKind
    model_folder: str
    model_fingerprint: str
    store_folder: str
    """Where the experts are read from: the model folder itself or the prepared copy's folder."""
    expert_format: WeightFormat
    dense_format: WeightFormat
    is_exact: bool
    needs_prepare: bool
    bytes_to_write: int
    budgets: Budgets
    context_tokens: int
    slots_per_layer: list[int]
    """RAM expert slots of each MoE layer, top layer first.

    Fewer than ``top_k`` suffice: then the experts of a token are computed in groups.
    """
    tiers: list[TierShare]
    ram_parts: dict[MemoryPart, int]
    ram_bytes: int
    """Sum of ``ram_parts``; never above the RAM budget."""
    min_ram_bytes: int
    """Smallest RAM budget with which this plan still runs."""
    all_ram_bytes: int
    """RAM budget from which on every expert stays in RAM."""
    base_bytes: int
    """Expected resident size of the runtime without arenas."""
    forecast: Forecast | None
    reasons: list[Reason]
    recommended_because: list[Reason] = []
    """Two reasons if this is the choice to take; else none."""
    problem: ErrorReport | None = None
    device: str = "cpu"
    """Where the dense part and the KV cache lie and are computed, ``cpu`` or a device id.

    With a device, ``ram_parts`` holds no dense part and no KV cache, and its work is what the
    processor needs to compute the experts that the device does not hold.
    """
    choice: PlanChoice | None = None
    """Its name; None for a copy that was written and that nothing speaks for."""
    vram_slots_per_layer: list[int] = []
    """Device expert slots of each MoE layer; empty where no device is used."""
    vram_parts: dict[MemoryPart, int] = {}
    vram_bytes: int = 0
    """Sum of ``vram_parts``; never above the device's budget."""
    min_vram_bytes: int = 0
    """Smallest VRAM budget with which a device is of use: dense part, KV cache, work."""
    all_vram_bytes: int = 0
    """VRAM budget from which on every expert stays on the device."""
    ram_kv_layers: list[int] = []
    """Layers whose keys and values lie in RAM although a device holds those of the others."""


class BudgetCurve(Value):
    """What one kind of plan would do under a grid of budgets, for sliders while they move.

    The lists from ``num_in_vram`` on have a value for each pair of budgets: all RAM budgets under
    the first VRAM budget, then those under the second, and so on. Of a pair with which the model
    cannot be loaded, ``context_tokens`` is 0 and so is the rest.
    """

    kind: PlanKind
    device: str
    """The device whose budget is varied; ``cpu`` where there is none."""
    num_experts: int
    """Of all layers."""
    vram_budgets: list[int]
    """Ascending, from 0; the second is the least with which the device is of use."""
    ram_budgets: list[int]
    """Ascending."""
    automatic_vram: int
    """The VRAM budget that the planner takes by itself."""
    automatic_ram: list[int]
    """The RAM budget that the planner takes by itself under each VRAM budget."""
    num_in_vram: list[int]
    num_in_ram: list[int]
    context_tokens: list[int]
    prompt_tokens_per_s_low: list[float]
    prompt_tokens_per_s_high: list[float]
    decode_tokens_per_s_low: list[float]
    decode_tokens_per_s_high: list[float]
    drive_bytes_per_token: list[float]
