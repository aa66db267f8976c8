"""When reading from the drive costs too much, what it costs, and what would help most. Pure."""

import dataclasses
import enum
from collections.abc import Sequence

from app.graphs.series import Curve, Totals
from runtime.protocol.chat import GenerationStats
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Budgets

MAX_WAIT_RATIO = 0.5
"""Above it, waiting for the drive takes the larger part of the time."""
RELEASE = 0.8
"""A warning goes when both ratios are below this part of their limits."""
MIN_TOKENS = 8
"""Fewer tokens say nothing."""
MIN_GAIN = 0.2
"""A remedy has to save at least this part of the reads."""
MAX_REMEDIES = 2
DRIVE_SOURCE = "drive-reads"
RAM_BY_DRIVE_ENERGY = 0.074
"""What RAM takes for a byte, by what a drive is assumed to take for it."""
_J_PER_KWH = 3.6e6
_BITS_ORDER = tuple(PlanKind)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriveUse:
    """What the drive took part in while some tokens were written."""

    num_tokens: int
    drive_bytes: float
    wait_s: float
    total_s: float
    drive_j: float
    total_j: float

    @property
    def wait_ratio(self) -> float:
        """Share of the time that was spent waiting for the drive."""
        return self.wait_s / self.total_s if self.total_s > 0 else 0.0

    @property
    def energy_ratio(self) -> float:
        """Share of the energy that went into reading."""
        return self.drive_j / self.total_j if self.total_j > 0 else 0.0

    @property
    def gb_per_100_tokens(self) -> float:
        """Gigabytes read for a hundred tokens."""
        return self.drive_bytes / 1e9 / self.num_tokens * 100 if self.num_tokens else 0.0

    @property
    def wh_per_1000_tokens(self) -> float:
        """Energy of all parts for a thousand tokens."""
        return self.total_j / 3600 / self.num_tokens * 1000 if self.num_tokens else 0.0

    def cost_per_1000_tokens(self, price_per_kwh: float) -> float:
        """What a thousand tokens cost at a tariff."""
        if not self.num_tokens:
            return 0.0
        return self.total_j / _J_PER_KWH / self.num_tokens * 1000 * price_per_kwh

    @property
    def from_ram(self) -> "DriveUse":
        """An estimate of the same tokens with every expert in RAM.

        Nothing is waited for, what is not reading goes down with the time, and the bytes that were
        read take what RAM takes for them.
        """
        rest_j = max(0.0, self.total_j - self.drive_j) * (1 - min(1.0, self.wait_ratio))
        return dataclasses.replace(
            self,
            drive_bytes=0.0,
            wait_s=0.0,
            total_s=max(0.0, self.total_s - self.wait_s),
            drive_j=0.0,
            total_j=rest_j + RAM_BY_DRIVE_ENERGY * self.drive_j,
        )


class RemedyKind(enum.Enum):
    """What can be done about it."""

    MORE_MEMORY = "more_memory"
    LOWER_BITS = "lower_bits"
    SMALLER_MODEL = "smaller_model"


@dataclasses.dataclass(frozen=True, slots=True)
class Remedy:
    """One thing that would help."""

    kind: RemedyKind
    plan: PlacementPlan | None = None
    """The plan that does it, with its forecast; None where no plan does."""


@dataclasses.dataclass(frozen=True, slots=True)
class DriveWarning:
    """What a person is told while reading from the drive costs too much."""

    use: DriveUse
    remedies: tuple[Remedy, ...] = ()
    """What would help most, at most two, the best first; empty while it is being worked out."""


def use_of_answer(stats: GenerationStats) -> DriveUse:
    """Return the use of one answer, its prompt included."""
    energy = stats.energy
    return DriveUse(
        num_tokens=stats.generated_tokens,
        drive_bytes=stats.drive_bytes_read,
        wait_s=stats.seconds.get("drive_wait", 0.0),
        total_s=sum(stats.seconds.values()),
        drive_j=sum(part.joules for part in energy.parts if part.source == DRIVE_SOURCE),
        total_j=energy.total_j or 0.0,
    )


def use_of_totals(totals: Totals) -> DriveUse:
    """Return the use during some samples."""
    return DriveUse(
        num_tokens=totals.num_tokens,
        drive_bytes=totals.amounts[Curve.DRIVE.value],
        wait_s=totals.seconds.get("drive_wait", 0.0),
        total_s=sum(totals.seconds.values()),
        drive_j=totals.joules.get(DRIVE_SOURCE, 0.0),
        total_j=totals.total_j,
    )


def is_too_much(use: DriveUse, max_energy_ratio: float, *, was_too_much: bool = False) -> bool:
    """Whether a person is warned; one who is warned already stays so until it is clearly better."""
    if use.num_tokens < MIN_TOKENS:
        return was_too_much
    if use.drive_bytes <= 0:
        # The system's cache answered: the drive did nothing.
        return False
    part = RELEASE if was_too_much else 1.0
    return use.wait_ratio > MAX_WAIT_RATIO * part or use.energy_ratio > max_energy_ratio * part


def best_remedies(
    current: PlacementPlan, roomy: Sequence[PlacementPlan], same: Sequence[PlacementPlan]
) -> tuple[Remedy, ...]:
    """Return what would help most, the best first.

    ``roomy`` are the plans of the same model without budgets of the person's own, ``same`` those
    under the budgets in force. More memory leaves the answers as they are, so it comes first where
    it saves half the reads; else what is forecast to be faster. A smaller model is named where
    fewer than two plans help.
    """
    more = next((plan for plan in _useful(current, roomy) if plan.kind is current.kind), None)
    bits = _BITS_ORDER.index(current.kind)
    lower = [plan for plan in _useful(current, same) if _BITS_ORDER.index(plan.kind) > bits]
    lower.sort(key=_rate, reverse=True)
    found = [Remedy(RemedyKind.LOWER_BITS, plan) for plan in lower]
    if more is not None:
        is_first = _read_per_token(more) <= _read_per_token(current) / 2 or (
            not lower or _rate(more) >= _rate(lower[0])
        )
        found.insert(0 if is_first else 1, Remedy(RemedyKind.MORE_MEMORY, more))
    return (*found, Remedy(RemedyKind.SMALLER_MODEL))[:MAX_REMEDIES]


def _useful(current: PlacementPlan, plans: Sequence[PlacementPlan]) -> list[PlacementPlan]:
    """Return the plans that can be carried out and read clearly less."""
    before = _read_per_token(current)
    return [
        plan
        for plan in plans
        if plan.problem is None
        and _read_per_token(plan) <= before * (1 - MIN_GAIN)
        and _read_per_token(plan) < before
    ]


def budgets_of(plan: PlacementPlan) -> Budgets:
    """Return the budgets that make a plan as it is, whatever the planner would choose later."""
    vram = {plan.device: plan.vram_bytes} if plan.vram_bytes else plan.budgets.vram_bytes
    return Budgets(ram_bytes=plan.ram_bytes, vram_bytes=vram)


def _read_per_token(plan: PlacementPlan) -> float:
    return plan.forecast.drive_bytes_per_token if plan.forecast is not None else float("inf")


def _rate(plan: PlacementPlan) -> float:
    band = plan.forecast
    return (band.decode_tokens_per_s_low + band.decode_tokens_per_s_high) / 2 if band else 0.0
