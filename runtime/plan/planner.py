"""The planner: facts of a model, facts of a PC and budgets to plans with reasons."""

import dataclasses
from collections.abc import Mapping, Sequence

from runtime.errors import LarderError, report_of
from runtime.plan.cost import DEFAULT_COSTS, CostConstants, Reads, forecast, rates_of
from runtime.plan.memory import (
    BASE_BYTES,
    DEFAULT_CONTEXT_TOKENS,
    MIN_CONTEXT_TOKENS,
    Division,
    Needs,
    Room,
    divide,
    even_slots,
    room_of,
)
from runtime.plan.reasons import Facts, reasons_of
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.machine import MachineReport
from runtime.protocol.model import ModelReport, PreparedCopy, TierShare
from runtime.protocol.plan import MemoryPart, PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, Forecast, Tier, WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import kv_cache_bytes
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import expert_layout

FORMAT_OF_KIND = {
    PlanKind.EIGHT_BIT: WeightFormat.Q8_G32,
    PlanKind.FOUR_BIT: WeightFormat.Q4_G32,
}
PLAIN_FORMATS = frozenset({WeightFormat.F32, WeightFormat.F16, WeightFormat.BF16})


def plan_model(
    facts: ModelFacts,
    machine: MachineReport,
    budgets: Budgets,
    context_tokens: int = 0,
    speed_ratios: Mapping[PlanKind, float] | None = None,
    costs: CostConstants = DEFAULT_COSTS,
) -> list[PlacementPlan]:
    """Return one plan of each kind that exists for the model, the most exact first.

    A plan that cannot be loaded has a ``problem`` and shows the smallest placement. ``machine``
    should hold the drive of the model's folder and of its prepared copies; ``context_tokens`` 0
    lets the planner choose; ``speed_ratios`` are measured by predicted speeds of earlier runs.
    A model with problems has no plans.
    """
    stored_format = facts.report.stored_format
    if not facts.report.is_runnable or stored_format is None:
        return []
    kinds = [PlanKind.EXACT]
    if stored_format in PLAIN_FORMATS and facts.spec.moe_layers:
        kinds += FORMAT_OF_KIND
    case = _Case(facts, stored_format, machine, budgets, context_tokens, costs)
    return [_plan_kind(case, kind, (speed_ratios or {}).get(kind)) for kind in kinds]


def recommend(plans: Sequence[PlacementPlan]) -> PlanKind | None:
    """Return the kind to take: the most exact one that stays in RAM, else the fastest."""
    possible = [plan for plan in plans if plan.problem is None]
    for plan in possible:
        if all(share.tier is not Tier.DRIVE for share in plan.tiers):
            return plan.kind
    return max(possible, key=_speed).kind if possible else None


def _speed(plan: PlacementPlan) -> float:
    return plan.forecast.decode_tokens_per_s_low if plan.forecast else 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """What all kinds of one call share."""

    facts: ModelFacts
    stored_format: WeightFormat
    machine: MachineReport
    budgets: Budgets
    asked_context_tokens: int
    costs: CostConstants

    @property
    def model(self) -> ModelReport:
        """What inspecting found."""
        return self.facts.report

    @property
    def spec(self) -> ModelSpec:
        """The architecture."""
        return self.facts.spec

    @property
    def wanted_context_tokens(self) -> int:
        """What was asked for, within what the model can; else the default."""
        wanted = self.asked_context_tokens or DEFAULT_CONTEXT_TOKENS
        return min(wanted, self.spec.max_context_tokens)

    def needs(self, expert_format: WeightFormat) -> Needs:
        """Return what the model takes with its experts in a format."""
        spec = self.spec
        wanted = self.wanted_context_tokens
        layout = (
            expert_layout(expert_format, spec.hidden_size, spec.expert_width)
            if spec.moe_layers
            else None
        )
        return Needs(
            spec=spec,
            dense_bytes=self.facts.dense_ram_bytes,
            record_bytes=layout.record_bytes if layout else 0,
            wanted_context_tokens=wanted,
            min_context_tokens=(
                wanted if self.asked_context_tokens else min(wanted, MIN_CONTEXT_TOKENS)
            ),
        )


def _plan_kind(case: _Case, kind: PlanKind, speed_ratio: float | None) -> PlacementPlan:
    is_exact = kind is PlanKind.EXACT
    expert_format = case.stored_format if is_exact else FORMAT_OF_KIND[kind]
    needs = case.needs(expert_format)
    room = room_of(case.machine)
    budget = _budget(case.budgets, needs, room)
    problem = _problem(case, needs, room, budget)
    division = divide(needs, budget) if problem is None else _smallest(needs)
    copy = None if is_exact else _copy_of(case.model, expert_format)
    drive_bytes = case.model.expert_bytes if is_exact else needs.record_bytes
    tiers = _tiers(needs, division, drive_bytes, case.model.folder)
    predicted = None
    if problem is None:
        folder = copy.folder if copy else case.model.folder
        predicted = _forecast(case, needs, division, expert_format, folder, speed_ratio)
    ram_parts = _ram_parts(needs, division)
    facts = Facts(
        machine=case.machine,
        budgets=case.budgets,
        needs=needs,
        division=division,
        room=room,
        budget_bytes=budget,
        ram_bytes=sum(ram_parts.values()),
        tiers=tiers,
        forecast=predicted,
        copy=copy,
        expert_format=expert_format,
        is_exact=is_exact,
    )
    return PlacementPlan(
        kind=kind,
        model_folder=case.model.folder,
        model_fingerprint=case.model.fingerprint,
        store_folder=case.model.folder if is_exact else copy.folder if copy else "",
        expert_format=expert_format,
        dense_format=case.stored_format,
        is_exact=is_exact,
        needs_prepare=not is_exact and copy is None,
        bytes_to_write=0 if is_exact or copy else needs.num_all_slots * needs.record_bytes,
        budgets=Budgets(ram_bytes=budget, vram_bytes=case.budgets.vram_bytes),
        context_tokens=division.context_tokens,
        slots_per_layer=list(division.slots_per_layer),
        tiers=tiers,
        ram_parts=ram_parts,
        ram_bytes=sum(ram_parts.values()),
        min_ram_bytes=needs.min_ram_bytes,
        all_ram_bytes=needs.all_ram_bytes,
        base_bytes=BASE_BYTES,
        forecast=predicted,
        reasons=reasons_of(facts),
        problem=problem,
    )


def _budget(budgets: Budgets, needs: Needs, room: Room) -> int:
    """Return the RAM budget in force: the person's within what is free, else the planner's."""
    if budgets.ram_bytes is not None:
        return max(0, min(budgets.ram_bytes, room.largest_bytes))
    return min(room.default_bytes, needs.all_ram_bytes)


def _problem(case: _Case, needs: Needs, room: Room, budget: int) -> ErrorReport | None:
    """Return why this plan cannot be loaded, or None."""
    asked, most = case.asked_context_tokens, case.spec.max_context_tokens
    if asked > most:
        return _report(ErrorCode.CONTEXT_TOO_LONG, asked_tokens=asked, max_tokens=most)
    present = {device.device for device in case.machine.devices}
    for device in case.budgets.vram_bytes:
        if device not in present:
            return _report(ErrorCode.VRAM_NOT_THERE, device=device)
    needed = needs.min_ram_bytes
    given = case.budgets.ram_bytes
    if given is not None and given < needed:
        return _report(ErrorCode.RAM_BUDGET_TOO_SMALL, budget_bytes=given, needed_bytes=needed)
    if budget < needed:
        free = room.default_bytes if given is None else room.largest_bytes
        return _report(ErrorCode.RAM_NOT_FREE, free_bytes=free, needed_bytes=needed)
    return None


def _report(code: ErrorCode, **parameters: str | int) -> ErrorReport:
    return report_of(LarderError(code, "", **parameters))


def _smallest(needs: Needs) -> Division:
    slots = even_slots(needs.num_min_slots, len(needs.spec.moe_layers))
    return Division(tuple(slots), needs.min_context_tokens)


def _copy_of(model: ModelReport, expert_format: WeightFormat) -> PreparedCopy | None:
    return next((copy for copy in model.prepared if copy.expert_format is expert_format), None)


def _ram_parts(needs: Needs, division: Division) -> dict[MemoryPart, int]:
    return {
        MemoryPart.DENSE: needs.dense_bytes,
        MemoryPart.EXPERTS: sum(division.slots_per_layer) * needs.record_bytes,
        MemoryPart.KV_CACHE: kv_cache_bytes(needs.spec, division.context_tokens),
        MemoryPart.WORK: needs.work_bytes(division.context_tokens),
    }


def _tiers(needs: Needs, division: Division, drive_bytes: int, folder: str) -> list[TierShare]:
    """Return what each tier holds; the drive only if it holds something that RAM does not."""
    num_slots = sum(division.slots_per_layer)
    num_absent = needs.num_all_slots - num_slots
    tiers = [
        TierShare(
            tier=Tier.RAM,
            device="cpu",
            num_experts=num_slots,
            bytes=num_slots * needs.record_bytes,
        )
    ]
    if num_absent:
        tiers.append(
            TierShare(
                tier=Tier.DRIVE,
                device=folder,
                num_experts=num_absent,
                bytes=num_absent * drive_bytes,
            )
        )
    return tiers


def _forecast(
    case: _Case,
    needs: Needs,
    division: Division,
    expert_format: WeightFormat,
    folder: str,
    speed_ratio: float | None,
) -> Forecast:
    is_exact = expert_format is case.stored_format
    weight_bytes = 4 if case.stored_format is WeightFormat.F32 else 2
    embedding = case.spec.vocabulary_size * case.spec.hidden_size * weight_bytes
    # Of an embedding of its own, a token reads one row.
    skipped = 0 if case.spec.is_tied else min(embedding, case.model.dense_bytes // 2)
    reads = Reads(
        dense_bytes=case.model.dense_bytes - skipped,
        dense_format=case.stored_format,
        expert_record_bytes=needs.record_bytes,
        expert_drive_bytes=case.model.expert_bytes if is_exact else needs.record_bytes,
        expert_format=expert_format,
        kv_bytes_per_token=case.model.kv_bytes_per_token,
        num_active_parameters=case.model.num_active_parameters,
    )
    rates = rates_of(case.machine, folder, case.costs)
    num_slots = sum(division.slots_per_layer)
    return forecast(case.spec, reads, rates, num_slots, speed_ratio, case.costs)
