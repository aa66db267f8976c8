"""The planner: facts of a model, facts of a PC and budgets to plans with reasons."""

import dataclasses

from runtime.errors import LarderError, report_of
from runtime.plan.budget_curve import curve_over, grid_of
from runtime.plan.choices import offered
from runtime.plan.cost import (
    Held,
    Known,
    Reads,
    forecast,
    rates_of,
    worth_of,
)
from runtime.plan.cost_constants import DEFAULT_COSTS, CostConstants
from runtime.plan.history import Experience, Setting, experience_of, held_ratio
from runtime.plan.hits import HitCurve, curve_of
from runtime.plan.kinds import FORMAT_OF_KIND, has_kind, mixes_of, smaller_kinds
from runtime.plan.kv_split import Worth
from runtime.plan.memory import (
    BASE_BYTES,
    DEFAULT_CONTEXT_TOKENS,
    MIN_CONTEXT_TOKENS,
    MIN_SLOTS_PER_LAYER,
    Needs,
)
from runtime.plan.placement import Placement, card_that_helps, place, usable_device
from runtime.plan.reasons import Facts, reasons_of
from runtime.plan.recommendation import explained
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.machine import MachineReport
from runtime.protocol.model import MixedExperts, ModelReport, PreparedCopy
from runtime.protocol.plan import BudgetCurve, PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, Forecast, WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.model import ModelSpec
from runtime.spec.past import NO_PAST, Past
from runtime.spec.ram_slots import Records
from runtime.spec.tensors import PLAIN_FORMATS, expert_layout


def plan_model(
    facts: ModelFacts,
    machine: MachineReport,
    budgets: Budgets,
    context_tokens: int = 0,
    past: Past = NO_PAST,
    costs: CostConstants = DEFAULT_COSTS,
    wanted: PlanKind | None = None,
) -> list[PlacementPlan]:
    """Return up to four plans with names and those of written copies, the most exact first.

    A plan that cannot be loaded has a ``problem`` and shows the smallest placement. ``machine``
    should hold the drive of the model's folder and of its prepared copies; ``context_tokens`` 0
    lets the planner choose; ``past`` is what this model did before on this PC; a ``wanted`` kind
    has a plan even where nothing speaks for it. A model with problems has no plans.
    """
    plans = plan_kinds(facts, machine, budgets, context_tokens, past, costs)
    return explained(offered(plans, wanted))


def plan_kinds(
    facts: ModelFacts,
    machine: MachineReport,
    budgets: Budgets,
    context_tokens: int = 0,
    past: Past = NO_PAST,
    costs: CostConstants = DEFAULT_COSTS,
) -> list[PlacementPlan]:
    """Return one plan of each kind that the model could have, the most exact first.

    The arguments are those of ``plan_model``.
    """
    stored_format = facts.report.stored_format
    if not facts.report.is_runnable or stored_format is None:
        return []
    kinds = [PlanKind.EXACT, *smaller_kinds(facts, stored_format)]
    hits = curve_of(facts.spec, past.reuse)
    case = _Case(facts, stored_format, machine, budgets, context_tokens, costs, past, hits)
    return [_plan_kind(case, kind) for kind in kinds]


def plan_curve(
    facts: ModelFacts,
    machine: MachineReport,
    kind: PlanKind,
    context_tokens: int = 0,
    past: Past = NO_PAST,
    costs: CostConstants = DEFAULT_COSTS,
) -> BudgetCurve | None:
    """Return what one kind of plan does under many budgets; None where there is no such plan.

    The arguments are those of ``plan_model``.
    """
    stored_format = facts.report.stored_format
    if not facts.report.is_runnable or stored_format is None:
        return None
    if not has_kind(facts, stored_format, kind):
        return None
    hits = curve_of(facts.spec, past.reuse)
    case = _Case(facts, stored_format, machine, Budgets(), context_tokens, costs, past, hits)
    form = _form_of(case, kind)
    folder = form.copy.folder if form.copy else case.model.folder

    def predict(placement: Placement) -> Forecast:
        known = _experience(case, placement, form)
        return _forecast(case, placement, form, folder, known)

    needs = case.needs(form)
    return curve_over(kind, grid_of(needs, machine, case.worth(needs, form)), predict)


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    """How the experts of a kind of plan lie."""

    format: WeightFormat
    """Of all experts, or of the most."""
    is_in_place: bool
    """Whether they are read from the published files."""
    copy: PreparedCopy | None = None
    """The written copy that holds them, if there is one."""
    mixed: MixedExperts | None = None
    """What they take where they are published in several formats."""

    @property
    def mix(self) -> PreparedCopy | None:
        """The copy, if it is one of mixed bits."""
        return self.copy if self.copy is not None and self.copy.mix_bits else None

    @property
    def records(self) -> Records | None:
        """What records take, None where all take as much."""
        if self.mix is not None:
            return Records(self.mix.records_bytes, tuple(self.mix.slot_bytes))
        if self.mixed is not None:
            return Records(self.mixed.records_bytes, tuple(self.mixed.slot_bytes))
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """What all kinds of one call share."""

    facts: ModelFacts
    stored_format: WeightFormat
    machine: MachineReport
    budgets: Budgets
    asked_context_tokens: int
    costs: CostConstants
    past: Past
    hits: HitCurve

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
        """What was asked for, within what the model can; else the default.

        Who asks for nothing gets no context for which short chats are computed otherwise.
        """
        asked = self.asked_context_tokens
        if not asked:
            return min(DEFAULT_CONTEXT_TOKENS, self.spec.original_context_tokens)
        return min(asked, self.spec.max_context_tokens)

    @property
    def dense_format(self) -> WeightFormat:
        """The format of the dense part: packed experts stand beside plain numbers."""
        is_plain = self.stored_format in PLAIN_FORMATS
        return self.stored_format if is_plain else WeightFormat.BF16

    def is_in_place(self, expert_format: WeightFormat) -> bool:
        """Whether experts of a format are read from the published files."""
        is_read_there = expert_format in PLAIN_FORMATS or bool(self.model.gguf_kinds)
        return expert_format is self.stored_format and is_read_there

    def drive_bytes(self, form: _Form, record_bytes: int) -> int:
        """Return what is read from the drive for one expert of so many bytes in RAM."""
        return self.model.expert_bytes if form.is_in_place else record_bytes

    def needs(self, form: _Form) -> Needs:
        """Return what the model takes of RAM alone with its experts in some form."""
        spec, records = self.spec, form.records
        wanted = self.wanted_context_tokens
        if records is None:
            record_bytes = 0
            if spec.moe_layers:
                layout = expert_layout(form.format, spec.hidden_size, spec.expert_width)
                record_bytes = layout.record_bytes
            records = Records.alike(record_bytes, spec)
        return Needs(
            spec=spec,
            dense_bytes=form.mix.dense_ram_bytes if form.mix else self.facts.dense_ram_bytes,
            records=records,
            wanted_context_tokens=wanted,
            min_context_tokens=(
                wanted if self.asked_context_tokens else min(wanted, MIN_CONTEXT_TOKENS)
            ),
            num_min_slots=len(spec.moe_layers) * min(spec.top_k, MIN_SLOTS_PER_LAYER),
        )

    def reads(self, form: _Form, record_bytes: int, ram_kv_layers: tuple[int, ...] = ()) -> Reads:
        """Return what a token reads with experts of so many bytes."""
        weight_bytes = 4 if self.dense_format is WeightFormat.F32 else 2
        embedding = self.spec.vocabulary_size * self.spec.hidden_size * weight_bytes
        # Of an embedding of its own, a token reads one row.
        skipped = 0 if self.spec.is_tied else min(embedding, self.model.dense_bytes // 2)
        return Reads(
            dense_bytes=self.model.dense_bytes - skipped,
            dense_format=self.dense_format,
            expert_record_bytes=record_bytes,
            expert_drive_bytes=self.drive_bytes(form, record_bytes),
            expert_formats=form.mixed.format_bytes if form.mixed else {form.format: 1},
            kv_bytes_per_token=self.model.kv_bytes_per_token,
            num_active_parameters=self.model.num_active_parameters,
            is_widened=bool(self.model.published_bits) and form.is_in_place,
            ram_kv_layers=ram_kv_layers,
        )

    def worth(self, needs: Needs, form: _Form) -> Worth | None:
        """Return what a token saves by what lies on the device of this PC."""
        device = usable_device(self.machine.devices)
        rates = rates_of(self.machine, "", device, self.costs)
        reads = self.reads(form, needs.mean_record_bytes)
        return worth_of(self.spec, reads, rates, self.hits, self.costs)


def _form_of(case: _Case, kind: PlanKind) -> _Form:
    """Return how the experts lie under a kind."""
    if kind is PlanKind.MIXED:
        return _form_of_mix(_best_mix(case))
    if kind is PlanKind.EXACT and case.model.mixed_experts is not None:
        return _Form(case.stored_format, is_in_place=True, mixed=case.model.mixed_experts)
    expert_format = case.stored_format if kind is PlanKind.EXACT else FORMAT_OF_KIND[kind]
    is_in_place = case.is_in_place(expert_format)
    copy = None if is_in_place else _copy_of(case.model, expert_format)
    return _Form(expert_format, is_in_place, copy)


def _form_of_mix(mix: PreparedCopy) -> _Form:
    return _Form(mix.expert_format, is_in_place=False, copy=mix)


def _plan_kind(case: _Case, kind: PlanKind) -> PlacementPlan:
    is_exact = kind is PlanKind.EXACT
    form = _form_of(case, kind)
    copy, expert_format, is_in_place = form.copy, form.format, form.is_in_place
    needs = case.needs(form)
    placement = place(needs, case.machine, case.budgets, case.worth(needs, form))
    problem = _problem(case, placement)
    record_bytes = placement.ram.needs.mean_record_bytes
    predicted = None
    experience = _experience(case, placement, form)
    if problem is None:
        folder = copy.folder if copy else case.model.folder
        predicted = _forecast(case, placement, form, folder, experience)
    tiers = placement.tiers(case.drive_bytes(form, record_bytes), case.model.folder)
    vram = placement.used.share if placement.used else None
    facts = Facts(
        machine=case.machine,
        budgets=case.budgets,
        placement=placement,
        tiers=tiers,
        forecast=predicted,
        experience=experience,
        num_own_tokens=case.past.reuse.num_tokens if case.past.reuse else 0,
        copy=copy,
        expert_format=expert_format,
        is_exact=is_exact,
        is_in_place=is_in_place,
        published_bits=case.model.published_bits,
        gguf_kinds=case.model.gguf_kinds,
        suitability=case.model.suitability,
    )
    return PlacementPlan(
        kind=kind,
        model_folder=case.model.folder,
        model_fingerprint=case.model.fingerprint,
        store_folder=case.model.folder if is_in_place else copy.folder if copy else "",
        expert_format=expert_format,
        dense_format=case.dense_format,
        is_exact=is_exact,
        needs_prepare=not is_in_place and copy is None,
        bytes_to_write=(
            0 if is_in_place or copy else placement.ram.needs.num_all_slots * record_bytes
        ),
        budgets=_budgets(case.budgets, placement),
        context_tokens=placement.home.division.context_tokens,
        slots_per_layer=list(placement.ram.division.slots_per_layer),
        tiers=tiers,
        ram_parts=placement.ram.parts,
        ram_bytes=placement.ram.num_bytes,
        min_ram_bytes=placement.ram.needs.min_bytes,
        all_ram_bytes=placement.ram.needs.all_bytes,
        base_bytes=BASE_BYTES,
        forecast=predicted,
        reasons=reasons_of(facts),
        problem=problem,
        device=placement.device,
        vram_slots_per_layer=list(vram.division.slots_per_layer) if vram else [],
        vram_parts=vram.parts if vram else {},
        vram_bytes=vram.num_bytes if vram else 0,
        min_vram_bytes=placement.card.least_bytes if placement.card else 0,
        all_vram_bytes=placement.card.share.needs.all_bytes if placement.card else 0,
        ram_kv_layers=list(placement.home.division.ram_kv_layers),
    )


def _budgets(given: Budgets, placement: Placement) -> Budgets:
    """Return the budgets in force: what was given for devices that are not used stays."""
    vram_bytes = dict(given.vram_bytes)
    if placement.used:
        vram_bytes[placement.device] = placement.used.share.budget_bytes
    return Budgets(ram_bytes=placement.ram.budget_bytes, vram_bytes=vram_bytes)


def _problem(case: _Case, placement: Placement) -> ErrorReport | None:
    """Return why this plan cannot be loaded, or None."""
    asked, most = case.asked_context_tokens, case.spec.max_context_tokens
    if asked > most:
        return _report(ErrorCode.CONTEXT_TOO_LONG, asked_tokens=asked, max_tokens=most)
    present = {device.device for device in case.machine.devices}
    for device, budget_bytes in case.budgets.vram_bytes.items():
        if budget_bytes and device not in present:
            return _report(ErrorCode.VRAM_NOT_THERE, device=device)
    ram = placement.ram
    needed = ram.needs.min_bytes
    given = case.budgets.ram_bytes
    is_budget_short = given is not None and given < needed
    if not is_budget_short and ram.is_large_enough:
        return None
    free = ram.room.default_bytes if given is None else ram.room.largest_bytes
    there = free if given is None else min(given, free)
    card = card_that_helps(placement, there)
    if card is not None:
        return _report(
            ErrorCode.VRAM_BUDGET_TOO_SMALL,
            device=card.report.name,
            budget_bytes=case.budgets.vram_bytes.get(card.report.device, card.share.budget_bytes),
            needed_bytes=card.least_bytes,
            ram_bytes=there,
        )
    if given is not None and is_budget_short:
        return _report(ErrorCode.RAM_BUDGET_TOO_SMALL, budget_bytes=given, needed_bytes=needed)
    return _report(ErrorCode.RAM_NOT_FREE, free_bytes=free, needed_bytes=needed)


def _report(code: ErrorCode, **parameters: str | int) -> ErrorReport:
    return report_of(LarderError(code, "", **parameters))


def _copy_of(model: ModelReport, expert_format: WeightFormat) -> PreparedCopy | None:
    same = (copy for copy in model.prepared if copy.expert_format is expert_format)
    return next((copy for copy in same if not copy.mix_bits), None)


def _best_mix(case: _Case) -> PreparedCopy:
    """Return the mix of the most bits that stays in RAM whole; if none does, of the fewest."""
    mixes = sorted(mixes_of(case.facts), key=lambda copy: (copy.mix_bits, copy.folder))

    def stays(copy: PreparedCopy) -> bool:
        placement = place(case.needs(_form_of_mix(copy)), case.machine, case.budgets)
        return placement.ram.num_slots == placement.ram.needs.num_all_slots

    return next(filter(stays, reversed(mixes)), mixes[0])


def _experience(case: _Case, placement: Placement, form: _Form) -> Experience | None:
    """Return what earlier answers under such a placement reached."""
    num_held = placement.num_in_vram + placement.num_in_ram
    setting = Setting(
        expert_format=form.format,
        device=placement.device,
        kernels=case.machine.kernels,
        held_ratio=held_ratio(num_held, placement.ram.needs.num_all_slots),
    )
    return experience_of(case.past.runs, setting)


def _forecast(
    case: _Case,
    placement: Placement,
    form: _Form,
    folder: str,
    experience: Experience | None,
) -> Forecast:
    record_bytes = placement.ram.needs.mean_record_bytes
    reads = case.reads(form, record_bytes, placement.home.division.ram_kv_layers)
    device = placement.used.report if placement.used else None
    rates = rates_of(case.machine, folder, device, case.costs)
    held = Held(placement.num_in_vram, placement.num_in_ram)
    return forecast(case.spec, reads, rates, held, Known(case.hits, experience), case.costs)
