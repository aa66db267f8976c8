"""From a folder on the command line to a loaded model."""

import argparse
import dataclasses

import msgspec

from runtime.cli.budgets import read_budgets
from runtime.cli.client import Client, CommandFailedError
from runtime.cli.models import absolute, planning_problem
from runtime.cli.screen import ProgressLine, readable_text
from runtime.errors import LarderError, report_of
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    LoadModel,
    LoadProgressed,
    ModelLoaded,
    ModelPlanned,
    PlanModel,
    Reply,
)
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan, PlanKind

_KINDS = {
    16: PlanKind.EXACT,
    8: PlanKind.EIGHT_BIT,
    6: PlanKind.SIX_BIT,
    4: PlanKind.FOUR_BIT,
    3: PlanKind.THREE_BIT,
    2: PlanKind.TWO_BIT,
}


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedChoice:
    """What was loaded and under which plan."""

    model: LoadedModel
    plan: PlacementPlan
    sampling: SamplingSettings
    """What the model's makers recommend, or our defaults."""


def load_model(client: Client, options: argparse.Namespace) -> LoadedChoice:
    """Plan, choose and load; raise ``CommandFailedError`` with the first thing that prevents it."""
    planned = client.ask(
        PlanModel(
            request_id=client.new_id(),
            folder=absolute(options.folder),
            budgets=read_budgets(client, options),
            context_tokens=options.context,
        ),
        ModelPlanned,
    )
    kind = PlanKind.MIXED if options.mix else None
    plan = _choose(planned, kind or (None if options.bits is None else _KINDS[options.bits]))
    line = ProgressLine("loading")

    def show(event: Reply) -> None:
        if isinstance(event, LoadProgressed):
            line.show(event.done_bytes, event.total_bytes)

    try:
        loaded = client.ask(LoadModel(request_id=client.new_id(), plan=plan), ModelLoaded, show)
    finally:
        line.clear()
    return LoadedChoice(loaded.model, plan, planned.report.sampling or SamplingSettings())


def read_sampling(options: argparse.Namespace, recommended: SamplingSettings) -> SamplingSettings:
    """Return the sampling of the command line; what is not given is as recommended."""
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    stop = list(map(readable_text, options.stop))
    changes = {"max_tokens": options.max_tokens, "stop": stop, **given}
    sampling: SamplingSettings = msgspec.structs.replace(recommended, **changes)
    return sampling


def _choose(planned: ModelPlanned, wanted: PlanKind | None) -> PlacementPlan:
    """Return the plan of a kind, or the best one; it can be loaded at once.

    Without a wish, a plan that would have to be prepared first gives way to one that runs now.
    """
    if planned.report.problems:
        raise CommandFailedError(planned.report.problems[0])
    kind = planned.recommended if wanted is None else wanted
    plan = next((each for each in planned.plans if each.kind is kind), None)
    if wanted is None and plan is not None and plan.needs_prepare:
        ready = (each for each in planned.plans if each.problem is None and not each.needs_prepare)
        plan = next(ready, plan)
    problem = planning_problem(planned) if plan is None else plan.problem
    if problem is not None:
        raise CommandFailedError(problem)
    if plan is None or plan.needs_prepare:
        error = LarderError(ErrorCode.NOT_PREPARED, folder=planned.report.folder)
        raise CommandFailedError(report_of(error))
    return plan
