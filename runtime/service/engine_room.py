"""The engine thread: loads one model and answers one conversation after the other."""

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from runtime.engine.base import Engine, EngineEvent
from runtime.errors import CancelledError, LarderError, report_of
from runtime.protocol.chat import ChatMessage
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.messages import (
    BudgetsSet,
    GenerationCancelled,
    GenerationFinished,
    LoadCancelled,
    LoadModel,
    LoadProgressed,
    ModelLoaded,
    StartGeneration,
)
from runtime.protocol.model import LoadedModel, LoadStage
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import TelemetrySample
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.requests import Request
from runtime.service.stages import Stage, StageHolder
from runtime.service.worker import Worker

_logger = logging.getLogger(__name__)
EngineFactory = Callable[[], Engine]
"""Makes an engine without a model; raises ``LarderError`` if there is none to be made."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """An engine with the model it has loaded, and the plan under which it lies."""

    engine: Engine
    model: LoadedModel
    plan: PlacementPlan
    wanted: PlacementPlan
    """What the person has asked for last; the plan in force may hold less."""


Adapted = Callable[[Loaded | ErrorReport | None], None]
"""Called once with what is loaded then, why nothing has changed, or None after another wish."""


class EngineRoom:
    """The thread that owns the engine, and what it does there.

    Threads: the command thread hands work in, the desk proposes placements; what is loaded is
    replaced by the engine thread alone and read by the telemetry thread and by the desk.
    """

    def __init__(
        self, engine_factory: EngineFactory, stages: StageHolder, error_log: ErrorLog
    ) -> None:
        self._engine_factory = engine_factory
        self._stages = stages
        self._error_log = error_log
        self._loaded: Loaded | None = None
        self._reading = threading.Lock()
        """Held while a prompt is turned into tokens, which one thread at a time may do."""
        self._num_proposed = 0
        """Wishes of the person that are on their way; more of the desk, fewer of the engine."""
        self._counting = threading.Lock()
        self._worker = Worker("engine")

    def load(self, request: Request, command: LoadModel) -> None:
        """Load under the command's plan; the stage is loading already."""
        self._submit(request, lambda: self._load(request, command))

    def generate(self, request: Request, command: StartGeneration) -> None:
        """Answer the command's conversation; the stage is generating already."""
        self._submit(request, lambda: self._generate(request, command))

    def count_tokens(self, conversation: Sequence[ChatMessage]) -> tuple[int, int]:
        """Return the tokens of a conversation and of the context, also during an answer."""
        loaded = self._require_loaded()
        with self._reading:
            return loaded.engine.count_tokens(conversation), loaded.model.context_tokens

    def held_vram(self) -> dict[str, int]:
        """Return what the loaded model takes of each device."""
        loaded = self._loaded
        if loaded is None or not loaded.plan.vram_bytes:
            return {}
        return {loaded.plan.device: loaded.plan.vram_bytes}

    def loaded(self) -> Loaded | None:
        """Return what is loaded, None if nothing is."""
        return self._loaded

    def loaded_plan(self) -> PlacementPlan:
        """Return the plan in force; raise ``NO_MODEL_LOADED`` if there is none."""
        return self._require_loaded().plan

    def propose(self, plan: PlacementPlan, requests: Sequence[Request]) -> None:
        """Have the loaded model placed by another plan, soon; that closes the requests."""
        engine = self._require_loaded().engine
        with self._counting:
            self._num_proposed += 1

        def done(tried: PlacementPlan, outcome: LoadedModel | LarderError) -> None:
            with self._counting:
                self._num_proposed -= 1
            if isinstance(outcome, LarderError):
                for request in requests:
                    request.fail(report_of(outcome))
                return
            self._loaded = Loaded(engine, outcome, tried, tried)
            for request in requests:
                request.close(BudgetsSet(request_id=request.request_id, model=outcome, plan=tried))

        engine.propose(plan, done)
        self._apply_soon(engine)

    def adapt(self, plan: PlacementPlan, done: Adapted) -> bool:
        """Have the loaded model placed by a plan that nobody asked for; what is wanted stays.

        Returns False, without calling ``done``, while a wish of the person is on its way; one that
        comes later counts instead. Called by the desk or the engine thread.
        """
        loaded = self._loaded
        with self._counting:
            if loaded is None or self._num_proposed:
                return False

        def tell(tried: PlacementPlan, outcome: LoadedModel | LarderError) -> None:
            if isinstance(outcome, LarderError):
                done(report_of(outcome))
                return
            if tried is plan:
                self._loaded = Loaded(loaded.engine, outcome, plan, loaded.wanted)
            done(self._loaded if tried is plan else None)

        loaded.engine.propose(plan, tell)
        self._apply_soon(loaded.engine)
        return True

    def sample(self, interval_s: float) -> TelemetrySample | None:
        """Return what happened in the interval, None without a loaded model."""
        loaded = self._loaded
        return None if loaded is None else loaded.engine.sample(interval_s)

    def finish(self, timeout_s: float) -> bool:
        """End the work, give back the engine; return whether that could be done in time."""
        self._worker.submit(self._close)
        self._worker.finish()
        return self._worker.join(timeout_s)

    def _apply_soon(self, engine: Engine) -> None:
        """For an engine that rests; during an answer this comes after that, and finds nothing."""
        self._worker.submit(lambda: run_guarded(engine.apply, lambda _: None, self._error_log))

    def _submit(self, request: Request, work: Callable[[], None]) -> None:
        self._worker.submit(lambda: run_guarded(work, request.fail, self._error_log))

    def _load(self, request: Request, command: LoadModel) -> None:
        def progress(stage: LoadStage, done_bytes: int, total_bytes: int) -> None:
            request.tell(
                LoadProgressed(
                    request_id=request.request_id,
                    stage=stage,
                    done_bytes=done_bytes,
                    total_bytes=total_bytes,
                )
            )

        with contextlib.ExitStack() as undo:
            undo.callback(self._stages.become, Stage.IDLE)
            try:
                engine = self._engine_factory()
                undo.callback(engine.close)
                request.cancel.check()
                model = engine.load(command.plan, progress, request.cancel)
            except CancelledError:
                undo.close()
                request.close(LoadCancelled(request_id=request.request_id))
                return
            undo.pop_all()
        self._loaded = Loaded(engine, model, command.plan, command.plan)
        self._stages.become(Stage.READY)
        _logger.info("model loaded: %s, %d bytes of RAM", model.name, model.budget_bytes)
        request.close(ModelLoaded(request_id=request.request_id, model=model))

    def _generate(self, request: Request, command: StartGeneration) -> None:
        engine = self._require_loaded().engine
        is_ended = False
        with contextlib.ExitStack() as undo:
            undo.callback(self._stages.become, Stage.READY)
            for event in self._start(engine, request, command):
                if isinstance(event, GenerationFinished | GenerationCancelled):
                    # Ready before anybody can see it, so that the next question is not refused.
                    undo.close()
                    request.close(event)
                    is_ended = True
                else:
                    request.tell(event)
            assert is_ended, "the engine ended an answer without saying so"

    def _start(
        self, engine: Engine, request: Request, command: StartGeneration
    ) -> Iterator[EngineEvent]:
        """Yield the events of an answer; the prompt is read before the first of them."""
        with self._reading:
            events = iter(
                engine.start(
                    request.request_id, command.conversation, command.sampling, request.cancel
                )
            )
            first = next(events)
        yield first
        yield from events

    def _require_loaded(self) -> Loaded:
        """Return what is loaded; raise ``NO_MODEL_LOADED`` if nothing is."""
        loaded = self._loaded
        if loaded is None:
            raise LarderError(ErrorCode.NO_MODEL_LOADED)
        return loaded

    def _close(self) -> None:
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            run_guarded(loaded.engine.close, lambda _: None, self._error_log)
