"""Other budgets for the model that is loaded: planned anew, then proposed to the engine."""

import threading

import msgspec

from runtime.errors import LarderError, report_of
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets
from runtime.service.engine_room import EngineRoom
from runtime.service.planning import Planning
from runtime.service.requests import Request


class BudgetChanges:
    """Wishes for other budgets; of those that wait together the newest possible one counts.

    A wish that cannot be met is refused and changes nothing. Those that are older than the one
    that was met close with it. Where the RAM that is left holds too little for giving up the card,
    the model keeps the least of the card: the plan in the reply says how much that is.

    Threads: the command thread adds; the desk works them off.
    """

    def __init__(self, planning: Planning, room: EngineRoom) -> None:
        self._planning = planning
        self._room = room
        self._lock = threading.Lock()
        self._waiting: list[tuple[Request, Budgets]] = []

    def add(self, request: Request, budgets: Budgets) -> None:
        """Let a wish wait for ``work_off``."""
        with self._lock:
            self._waiting.append((request, budgets))

    def work_off(self) -> None:
        """Plan for the newest wish and propose the plan; does nothing if none waits."""
        with self._lock:
            wishes, self._waiting = self._waiting, []
        is_decided = False
        try:
            self._meet(wishes)
            is_decided = True
        except LarderError as error:
            for request, _ in wishes:
                request.fail(report_of(error))
            is_decided = True
        finally:
            if not is_decided:
                # A bug fails the wish that asked for this; each other asks again.
                with self._lock:
                    self._waiting = [*wishes, *self._waiting]

    def _meet(self, wishes: list[tuple[Request, Budgets]]) -> None:
        while wishes:
            request, budgets = wishes[-1]
            loaded = self._room.loaded_plan()
            planned = plan_anew(self._planning, loaded, budgets)
            if isinstance(planned, ErrorReport) and _is_card_missed(planned, loaded):
                least = int(planned.parameters["needed_bytes"])
                planned = plan_anew(self._planning, loaded, _with_vram(budgets, loaded, least))
            if isinstance(planned, PlacementPlan):
                self._room.propose(planned, [each for each, _ in wishes])
                return
            request.fail(planned)
            wishes.pop()


def _is_card_missed(problem: ErrorReport, loaded: PlacementPlan) -> bool:
    """Whether budgets fail only because they give up the card that the model uses."""
    return problem.code is ErrorCode.VRAM_BUDGET_TOO_SMALL and loaded.vram_bytes > 0


def _with_vram(budgets: Budgets, loaded: PlacementPlan, num_bytes: int) -> Budgets:
    """Return the budgets with another one for the device that the loaded model uses."""
    vram_bytes = {**budgets.vram_bytes, loaded.device: num_bytes}
    return msgspec.structs.replace(budgets, vram_bytes=vram_bytes)


def plan_anew(
    planning: Planning, plan: PlacementPlan, budgets: Budgets
) -> PlacementPlan | ErrorReport:
    """Return the plan of the same model, kind, copy and context under other budgets, or why not.

    Raises ``LarderError`` with ``PLAN_OUTDATED`` if what the plan was made for is not there now.
    """
    other = plan_same(planning, plan, budgets)
    return other if isinstance(other, ErrorReport) or other.problem is None else other.problem


def plan_same(
    planning: Planning, plan: PlacementPlan, budgets: Budgets
) -> PlacementPlan | ErrorReport:
    """Return that plan even with a problem, then with the smallest placement; else as above."""
    planned = planning.plan(
        plan.model_folder,
        budgets,
        plan.context_tokens,
        {plan.device: plan.vram_bytes},
        plan.kind,
    )
    if planned.report.problems:
        return planned.report.problems[0]
    other = next((each for each in planned.plans if each.kind is plan.kind), None)
    copies = {copy.folder for copy in planned.report.prepared}
    if (
        other is None
        or other.needs_prepare
        or other.model_fingerprint != plan.model_fingerprint
        or plan.store_folder not in {plan.model_folder, *copies}
    ):
        raise LarderError(ErrorCode.PLAN_OUTDATED, folder=plan.model_folder)
    # Of several copies in one format the planner takes any.
    return msgspec.structs.replace(other, store_folder=plan.store_folder)
