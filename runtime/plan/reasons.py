"""Why a plan is as it is, each reason with its numbers."""

import dataclasses

from runtime.plan.memory import BASE_BYTES, Division, Needs, Room
from runtime.protocol.machine import MachineReport
from runtime.protocol.model import PreparedCopy, TierShare
from runtime.protocol.plan import Reason, ReasonCode
from runtime.protocol.values import Budgets, Forecast, Tier, WeightFormat

BITS = {WeightFormat.Q8_G32: 8, WeightFormat.Q4_G32: 4}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the planner knew and decided for one plan."""

    machine: MachineReport
    budgets: Budgets
    needs: Needs
    division: Division
    room: Room
    budget_bytes: int
    ram_bytes: int
    """What the plan takes of it."""
    tiers: list[TierShare]
    forecast: Forecast | None
    copy: PreparedCopy | None
    expert_format: WeightFormat
    is_exact: bool


def reasons_of(facts: Facts) -> list[Reason]:
    """Return the reasons in the order in which a person asks: where, why, what else."""
    return [
        *_placement(facts),
        *_context(facts),
        *_files(facts),
        *_machine(facts),
    ]


def _reason(code: ReasonCode, **parameters: str | float) -> Reason:
    return Reason(code=code, parameters=dict(parameters))


def _placement(facts: Facts) -> list[Reason]:
    drive = next((share for share in facts.tiers if share.tier is Tier.DRIVE), None)
    if drive is None:
        fits = _reason(
            ReasonCode.FITS_IN_RAM,
            num_experts=facts.needs.num_all_slots,
            needed_bytes=facts.ram_bytes,
            budget_bytes=facts.budget_bytes,
        )
        return [fits, _limit(facts)] if _is_shortened(facts) else [fits]
    reads = _reason(
        ReasonCode.READS_FROM_DRIVE,
        num_experts=drive.num_experts,
        num_all_experts=facts.needs.num_all_slots,
        drive_bytes=drive.bytes,
        bytes_per_token=facts.forecast.drive_bytes_per_token if facts.forecast else 0,
    )
    return [reads, _limit(facts)]


def _limit(facts: Facts) -> Reason:
    given = facts.budgets.ram_bytes
    if given is not None and given <= facts.room.largest_bytes:
        return _reason(
            ReasonCode.RAM_LIMITED_BY_BUDGET,
            budget_bytes=given,
            needed_bytes=facts.needs.all_ram_bytes,
        )
    if facts.room.limit_bytes is not None:
        return _reason(
            ReasonCode.RAM_LIMITED_BY_CONTROL_GROUP,
            limit_bytes=facts.room.limit_bytes,
            budget_bytes=facts.budget_bytes,
            needed_bytes=facts.needs.all_ram_bytes,
        )
    return _reason(
        ReasonCode.RAM_LIMITED_BY_FREE,
        free_bytes=facts.room.free_bytes + BASE_BYTES,
        reserve_bytes=facts.room.reserve_bytes,
        budget_bytes=facts.budget_bytes,
        needed_bytes=facts.needs.all_ram_bytes,
    )


def _is_shortened(facts: Facts) -> bool:
    return facts.division.context_tokens < facts.needs.wanted_context_tokens


def _context(facts: Facts) -> list[Reason]:
    if not _is_shortened(facts):
        return []
    return [
        _reason(
            ReasonCode.CONTEXT_SHORTENED,
            context_tokens=facts.division.context_tokens,
            wanted_tokens=facts.needs.wanted_context_tokens,
        )
    ]


def _files(facts: Facts) -> list[Reason]:
    if facts.is_exact:
        return [_reason(ReasonCode.NOTHING_WRITTEN), _reason(ReasonCode.ANSWERS_AS_PUBLISHED)]
    if facts.copy is not None:
        written = _reason(
            ReasonCode.ALREADY_PREPARED,
            folder=facts.copy.folder,
            size_bytes=facts.copy.size_bytes,
        )
    else:
        size_bytes = facts.needs.num_all_slots * facts.needs.record_bytes
        written = _reason(ReasonCode.WRITES_ONCE, size_bytes=size_bytes)
    nearly = _reason(ReasonCode.ANSWERS_NEARLY_AS_PUBLISHED, bits=BITS[facts.expert_format])
    return [written, nearly]


def _machine(facts: Facts) -> list[Reason]:
    reasons = []
    if not facts.machine.kernels.startswith("native"):
        reasons.append(_reason(ReasonCode.SLOW_KERNELS, kernels=facts.machine.kernels))
    if facts.machine.devices:
        reasons.append(_reason(ReasonCode.NO_GPU_USED, device=facts.machine.devices[0].name))
    return reasons
