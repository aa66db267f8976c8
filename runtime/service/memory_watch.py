"""The memory watch: has the RAM of the loaded model follow what other programs leave."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable

import msgspec

from runtime.plan.pressure import SOON_S, Hold, MemoryNow, PressureRule
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.messages import BudgetsAdapted
from runtime.protocol.plan import PlacementPlan, Reason, ReasonCode
from runtime.protocol.values import Budgets
from runtime.service.budget_changes import plan_same
from runtime.service.engine_room import EngineRoom, Loaded
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.planning import Planning
from runtime.service.requests import Sink
from runtime.service.worker import Job

MemoryGauge = Callable[[], MemoryNow]
_SHORT = (ErrorCode.RAM_NOT_FREE, ErrorCode.RAM_BUDGET_TOO_SMALL)
_logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the watch works on."""

    planning: Planning
    room: EngineRoom
    submit: Callable[[Job], None]
    """Has the desk do something."""
    sink: Sink
    error_log: ErrorLog


class MemoryWatch:
    """Looks at the PC's memory while a model is loaded and changes its RAM where that is due.

    A model gives back down to what it cannot do without; nothing is unloaded and no answer
    changes. It gets all that its person gave it back once there is room for long enough.

    Threads: ``start`` and ``finish`` belong to the command thread. The watch's own looks, the desk
    plans, the engine thread tells what came of it; one change is on its way at a time.
    """

    def __init__(
        self,
        gauge: MemoryGauge,
        ground: Ground,
        rule: PressureRule | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gauge = gauge
        self._planning = ground.planning
        self._room = ground.room
        self._submit = ground.submit
        self._sink = ground.sink
        self._error_log = ground.error_log
        self._rule = rule or PressureRule()
        self._clock = clock
        self._is_finished = threading.Event()
        self._is_changing = threading.Event()
        self._least: PlacementPlan | None = None
        """A plan under which the model can give back nothing more; of the desk."""
        self._interval_s = SOON_S
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look, if that has not begun."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
            self._thread.start()

    def finish(self, timeout_s: float) -> bool:
        """End the thread; return whether it has ended."""
        self._is_finished.set()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def look(self) -> None:
        """Look once, and have changed what is due."""
        loaded = self._room.loaded()
        if loaded is None or self._is_changing.is_set():
            return
        hold, memory = _hold_of(loaded), self._gauge()
        self._interval_s = self._rule.interval_s(memory, hold)
        target_bytes = self._rule.look(self._clock(), memory, hold)
        if target_bytes is None:
            return
        self._is_changing.set()

        def change() -> None:
            self._change(loaded, target_bytes)

        self._submit(lambda: run_guarded(change, self._give_up, self._error_log))

    def _run(self) -> None:
        while not self._is_finished.wait(self._interval_s):
            run_guarded(self.look, self._give_up, self._error_log)

    def _change(self, loaded: Loaded, target_bytes: int) -> None:
        """Plan for so much RAM and propose it; called by the desk."""
        before = loaded.plan
        is_less = target_bytes < before.ram_bytes
        if is_less and before is self._least:
            self._end(is_changed=False)
            return
        plan = _planned(self._planning, loaded, target_bytes)
        if plan is not None and (
            plan.ram_bytes < before.ram_bytes if is_less else plan.ram_bytes > before.ram_bytes
        ):
            self._propose(plan)
            return
        if is_less and plan is not None:
            self._least = before
        self._end(is_changed=False)

    def _propose(self, plan: PlacementPlan, *, is_second: bool = False) -> None:
        def done(outcome: Loaded | ErrorReport | None) -> None:
            if isinstance(outcome, Loaded):
                _logger.info("the model has %d bytes of RAM now", outcome.plan.ram_bytes)
                self._sink(BudgetsAdapted(model=outcome.model, plan=outcome.plan))
                self._end(is_changed=True)
            elif outcome is None:
                self._end(is_changed=True)
            elif (wider := _wider(plan, outcome)) is None or is_second:
                self._give_up(outcome)
            else:
                self._propose(wider, is_second=True)

        if not self._room.adapt(plan, done):
            # The person changes something meanwhile, after which things may be different.
            self._end(is_changed=False)

    def _give_up(self, error: ErrorReport) -> None:
        _logger.warning("the RAM of the model stays as it is: %s %s", error.code, error.parameters)
        self._end(is_changed=False)

    def _end(self, *, is_changed: bool) -> None:
        if is_changed:
            self._rule.note_changed()
        else:
            self._rule.note_failed(self._clock())
        self._is_changing.clear()


def _hold_of(loaded: Loaded) -> Hold:
    return Hold(
        base_bytes=loaded.model.base_bytes,
        ram_bytes=loaded.plan.ram_bytes,
        wanted_bytes=loaded.wanted.ram_bytes,
    )


def _planned(planning: Planning, loaded: Loaded, target_bytes: int) -> PlacementPlan | None:
    """Return the plan for so much RAM, the smallest there is for less than that; None if none."""
    wanted = loaded.wanted
    is_whole = target_bytes >= wanted.ram_bytes
    vram = loaded.plan.budgets.vram_bytes
    budgets = Budgets(ram_bytes=max(0, target_bytes), vram_bytes=vram)
    plan = plan_same(planning, loaded.plan, wanted.budgets if is_whole else budgets)
    if isinstance(plan, ErrorReport):
        return None
    if plan.problem is not None:
        if plan.problem.code not in _SHORT:
            return None
        smallest = msgspec.structs.replace(budgets, ram_bytes=plan.min_ram_bytes)
        plan = msgspec.structs.replace(plan, problem=None, budgets=smallest)
    return _explained(plan, wanted.ram_bytes)


def _explained(plan: PlacementPlan, wanted_bytes: int) -> PlacementPlan:
    """Return a plan that says why it is not, or is again, what the person gave."""
    given_bytes = wanted_bytes - plan.ram_bytes
    if given_bytes > 0:
        code = ReasonCode.RAM_GIVEN_BACK
        reason = Reason(
            code=code, parameters={"given_bytes": given_bytes, "wanted_bytes": wanted_bytes}
        )
    else:
        reason = Reason(code=ReasonCode.RAM_TAKEN_AGAIN, parameters={"wanted_bytes": wanted_bytes})
    return msgspec.structs.replace(plan, reasons=[reason, *plan.reasons])


def _wider(plan: PlacementPlan, error: ErrorReport) -> PlacementPlan | None:
    """Return a plan with the same slots and the budget that the engine says they take.

    Work buffers are as large as there was room for when the model was loaded, and stay.
    """
    needed = error.parameters.get("needed_bytes")
    if error.code is not ErrorCode.RAM_BUDGET_TOO_SMALL or not isinstance(needed, int):
        return None
    budgets = msgspec.structs.replace(plan.budgets, ram_bytes=needed)
    return msgspec.structs.replace(plan, budgets=budgets)
