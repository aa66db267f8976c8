"""Planning for the models and the machine that are really there."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from runtime.errors import LarderError, report_of
from runtime.hardware.figures import figures_of, require_reachable, state_figure, stated_among
from runtime.hardware.holders import ram_holders
from runtime.hardware.machine import describe_machine
from runtime.hardware.past_runs import PastRuns
from runtime.hardware.power import EnergyMeter, stated_terms
from runtime.hardware.profile import (
    MACHINE_FILE,
    MACHINE_VARIABLE,
    checked_profile,
    load_document,
)
from runtime.hardware.rates import RateCache
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.inspect.outlook import outlook
from runtime.plan.memory import room_of, vram_room_of
from runtime.plan.planner import plan_curve, plan_model
from runtime.plan.recommendation import needs_drive, recommend
from runtime.plan.suitability import suitability_of
from runtime.protocol.errors import ErrorCode
from runtime.protocol.figure_messages import StatedFigures
from runtime.protocol.hub import HubOutlook, HubSketch
from runtime.protocol.machine import DriveReport, MachineReport, Measured
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import BudgetCurve, PlanKind
from runtime.protocol.values import Budgets
from runtime.service.card_links import CardLinks
from runtime.service.drive_rates import DriveRates, rate_key, read_size
from runtime.service.folders import find_folders, use_stated_machine
from runtime.service.inspections import Inspections
from runtime.service.measuring import (
    BUSY_AGAIN_AFTER_S,
    forget_other_machine,
    kernels_name,
    measure_ram,
)
from runtime.service.planning import Figures, Planned
from runtime.service.prepared_places import PreparedPlaces
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import dense_bytes
from runtime.spec.past import Past
from runtime.tokenizer.judge import template_problem

PAST_RUNS = "past-runs"
"""The folder beside the rates that says what models did before."""
_STATED = "profile"


@dataclasses.dataclass(frozen=True, slots=True)
class _Known:
    """What plans of one folder are made from."""

    facts: ModelFacts
    machine: MachineReport
    past: Past


class LocalPlanning:
    """Reads headers, looks at the machine and asks the planner.

    Threads: ``inspect`` may be called by any thread, the others by one at a time.
    """

    def __init__(
        self,
        places: PreparedPlaces,
        rates_path: Path,
        drive_rates: DriveRates | None = None,
        card_links: CardLinks | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = places
        self._rates_path = rates_path
        self._past_runs = PastRuns(rates_path.with_name(PAST_RUNS))
        self._now_s = now_s
        self._ram_asked_s: float | None = None
        """When the rate of RAM was last measured, or found to be known."""
        self._inspections = Inspections(inspect_folder)
        self._drive_rates = drive_rates or DriveRates(rates_path)
        self._card_links = card_links or CardLinks(rates_path)

    def inspect(self, folder: str) -> ModelReport:
        """Return what the headers say, with the prepared copies wherever they lie."""
        return self._inspect(folder).report

    def plan(
        self,
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
        kind: PlanKind | None = None,
    ) -> Planned:
        """Return the plans for what is there now."""
        known = self._known(folder, held_vram or {})
        if isinstance(known, ModelReport):
            return Planned(known, [], None)
        plans = plan_model(
            known.facts, known.machine, budgets, context_tokens, known.past, wanted=kind
        )
        stated = self._stated(known.facts.report, held_vram or {})
        return Planned(known.facts.report, plans, recommend(plans), stated)

    def curve(
        self,
        folder: str,
        kind: PlanKind,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
    ) -> BudgetCurve | None:
        """Return what a kind of plan would do under a grid of budgets."""
        known = self._known(folder, held_vram or {})
        if isinstance(known, ModelReport):
            return None
        return plan_curve(known.facts, known.machine, kind, context_tokens, known.past)

    def _known(self, folder: str, held_vram: Mapping[str, int]) -> _Known | ModelReport:
        """Return what plans are made from; the report alone where there can be none."""
        inspection = self._inspect(folder)
        report, spec = inspection.report, inspection.spec
        if report.problems or spec is None:
            return report
        folders = [report.folder, self._places.usual, *(copy.folder for copy in report.prepared)]
        machine = with_held(
            self._describe(folders, report.expert_bytes), own_ram_bytes(), held_vram
        )
        facts = ModelFacts(
            report=report, spec=spec, dense_ram_bytes=dense_bytes(inspection.tensors.values())
        )
        return _Known(facts, machine, self._past_runs.read(report.fingerprint))

    def forecast(
        self,
        sketches: Sequence[HubSketch],
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
    ) -> list[HubOutlook]:
        """Return what models would do on what is there now, by their sketches alone."""
        # Measured with reads of the usual size: each model's own would take seconds the first time.
        machine = with_held(
            self._describe([folder, self._places.usual], 0), own_ram_bytes(), held_vram or {}
        )
        return [
            _forecast(outlook(sketch, folder), machine, budgets, context_tokens)
            for sketch in sketches
        ]

    def describe(
        self,
        folders: Sequence[str],
        held_vram: Mapping[str, int] | None = None,
        *,
        is_thorough: bool = False,
    ) -> MachineReport:
        """Return what this PC has; the first time, its memory, drives and cards are measured.

        A drive is measured at the size of the experts of the first model among the folders, and
        thoroughly with few and many reads in flight.
        """
        sizes = (inspect_folder(folder).report.expert_bytes for folder in folders)
        size = next(filter(None, sizes), 0)
        machine = _without_loaded(self._describe(folders, size), held_vram)
        if is_thorough:
            machine = msgspec.structs.replace(
                machine, drives=self._drive_rates.with_depths(machine.drives, size)
            )
        with contextlib.closing(EnergyMeter(terms=stated_terms(os.environ))) as meter:
            return msgspec.structs.replace(
                machine,
                energy_sources=meter.sources,
                ram_held_by=ram_holders(),
            )

    def figures(
        self,
        folder: str,
        held_vram: Mapping[str, int] | None = None,
        *,
        is_fresh: bool = False,
    ) -> Figures:
        """Return this PC's own figures beside the stated ones.

        Raises ``LarderError`` with ``MACHINE_FILE_INVALID`` for a profile written wrongly.
        """
        use_stated_machine(os.environ)
        if is_fresh:
            RateCache(self._rates_path).forget()
            self._ram_asked_s = None
            self._drive_rates = self._drive_rates.anew()
            self._card_links = self._card_links.anew()
        report = inspect_folder(folder).report if folder else None
        own = self._described(
            [folder or self._places.usual], report.expert_bytes if report else 0, env={}
        )
        own = _without_loaded(own, held_vram)
        place = find_folders().settings / MACHINE_FILE
        named = os.environ.get(MACHINE_VARIABLE, "")
        document = load_document(named) if named else {}
        checked_profile(document, named)
        return Figures(
            figures=figures_of(own, document, _choosable_sources()),
            file=named or str(place),
            is_fixed=bool(named) and Path(named) != place,
        )

    def _stated(self, report: ModelReport, held_vram: Mapping[str, int]) -> StatedFigures | None:
        """Return the figures of the profile in force that stand in the place of found ones.

        What was found is what is known now: nothing is measured.
        """
        named = os.environ.get(MACHINE_VARIABLE, "")
        if not named:
            return None
        document = load_document(named)
        # It may have been written meanwhile.
        checked_profile(document, named)
        own = describe_machine([report.folder], {}, rates_path=self._rates_path)
        rates, size = RateCache(self._rates_path), read_size(report.expert_bytes)
        own = msgspec.structs.replace(
            own, drives=[_with_kept_rate(drive, rates, size) for drive in own.drives]
        )
        own = with_held(own, own_ram_bytes(), held_vram)
        sources = _choosable_sources() if "energy_sources" in document else ()
        figures = stated_among(figures_of(own, document, sources))
        if not figures:
            return None
        is_fixed = Path(named) != find_folders().settings / MACHINE_FILE
        return StatedFigures(figures=figures, file=named, is_fixed=is_fixed)

    def state_figure(self, name: str, value: float | str | None) -> None:
        """Write it to the settings; it counts from the next plan and the next load on."""
        place = find_folders().settings / MACHINE_FILE
        named = os.environ.get(MACHINE_VARIABLE, "")
        if named and Path(named) != place:
            raise LarderError(
                ErrorCode.SETTING_INVALID,
                name=MACHINE_VARIABLE,
                found=named,
                expected="a start without it",
            )
        require_reachable(describe_machine(env={}), name, value, _choosable_sources())
        state_figure(place, name, value)

    def _describe(self, folders: Sequence[str], expert_bytes: int) -> MachineReport:
        use_stated_machine(os.environ)
        return self._described(folders, expert_bytes, os.environ)

    def _described(
        self, folders: Sequence[str], expert_bytes: int, env: Mapping[str, str]
    ) -> MachineReport:
        self._measure_ram()

        def look() -> MachineReport:
            return describe_machine(
                folders, env, kernels=kernels_name(), rates_path=self._rates_path
            )

        machine = look()
        # One after the other: what measures a card reads the drive to begin.
        drives = self._drive_rates.complete(machine.drives, expert_bytes)
        if self._card_links.measure(machine.devices, env):
            machine = look()
        return msgspec.structs.replace(
            machine,
            drives=drives,
            devices=[
                msgspec.structs.replace(device, reserve_bytes=vram_room_of(device).reserve_bytes)
                for device in machine.devices
            ],
            ram_reserve_bytes=room_of(machine).reserve_bytes,
        )

    def _measure_ram(self) -> None:
        """Measure RAM where that is due: at the start, and minutes after the PC was busy."""
        now_s, asked_s = self._now_s(), self._ram_asked_s
        if asked_s is not None and now_s - asked_s < BUSY_AGAIN_AFTER_S:
            return
        self._ram_asked_s = now_s
        if asked_s is None:
            forget_other_machine(self._rates_path)
        measure_ram(self._rates_path, is_start=asked_s is None)

    def _inspect(self, folder: str) -> Inspection:
        inspection = self._inspections(folder, self._places.usual)
        report = inspection.report
        if inspection.spec is not None:
            routing = self._past_runs.read(report.fingerprint).routing
            found = suitability_of(inspection.spec, routing)
            report = msgspec.structs.replace(report, suitability=found)
            inspection = dataclasses.replace(inspection, report=report)
        if not report.problems and (problem := template_problem(Path(report.folder))) is not None:
            report = msgspec.structs.replace(report, problems=[report_of(problem)])
            return dataclasses.replace(inspection, report=report)
        elsewhere = self._places.find_elsewhere(report.fingerprint) if report.fingerprint else []
        for copy in report.prepared:
            # One that was dropped itself; remembered, so that plans of the model find it too.
            self._places.add(copy.folder)
        elsewhere = [copy for copy in elsewhere if copy not in report.prepared]
        if not elsewhere:
            return inspection
        report = msgspec.structs.replace(report, prepared=[*report.prepared, *elsewhere])
        return dataclasses.replace(inspection, report=report)


def _forecast(
    facts: ModelFacts | None, machine: MachineReport, budgets: Budgets, context_tokens: int
) -> HubOutlook:
    """Return what the plan that is recommended says, if one is known and can be."""
    plans = [] if facts is None else plan_model(facts, machine, budgets, context_tokens)
    kind = recommend(plans)
    chosen = next((plan for plan in plans if plan.kind is kind), None)
    if chosen is None:
        return HubOutlook(is_too_large=bool(plans))
    return HubOutlook(forecast=chosen.forecast, is_on_drive=needs_drive(chosen))


def _with_kept_rate(drive: DriveReport, rates: RateCache, size: int) -> DriveReport:
    """Return the report with the rate that was measured with reads of a size, if one was."""
    key = rate_key(drive.folder, size)
    kept = rates.rate(key) if key is not None else None
    return msgspec.structs.replace(drive, read_bytes_per_s=drive.read_bytes_per_s or kept)


def _choosable_sources() -> list[str]:
    with contextlib.closing(EnergyMeter()) as meter:
        return meter.choosable


def _without_loaded(machine: MachineReport, held_vram: Mapping[str, int] | None) -> MachineReport:
    """Return the machine as it would be without the loaded model, if there is one."""
    return machine if held_vram is None else with_held(machine, own_ram_bytes(), held_vram)


def own_ram_bytes() -> int:
    """Return the memory that this process would give back: what it shares with files left out."""
    memory = psutil.Process().memory_info()
    return int(memory.rss - getattr(memory, "shared", 0))


def with_held(
    machine: MachineReport, ram_bytes: int, vram_bytes: Mapping[str, int]
) -> MachineReport:
    """Return the machine as it would be without what this process holds.

    What a profile states, simulated devices included, is not changed by what is held.
    """
    available = machine.ram_available
    if available.method != _STATED:
        most = (machine.ram_limit or machine.ram_total).value
        available = Measured(
            value=max(available.value, min(available.value + ram_bytes, most)),
            method=f"{available.method} and what this program holds",
        )
    devices = [
        device
        if device.is_simulated
        else msgspec.structs.replace(
            device,
            free_bytes=min(
                device.free_bytes + vram_bytes.get(device.device, 0), device.total_bytes
            ),
        )
        for device in machine.devices
    ]
    return msgspec.structs.replace(machine, ram_available=available, devices=devices)
