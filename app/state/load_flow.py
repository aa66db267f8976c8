"""How a wish for a model becomes a loaded model: plan, prepare if needed, plan again, load."""

import dataclasses
import enum
from collections.abc import Callable

from app.state.answer_flow import ignore
from app.state.candidate_flow import Limits, Send, fitted
from app.state.progress import Progress, ProgressKind, ProgressMeter
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.messages import (
    CancelRequest,
    CommandFailed,
    LoadCancelled,
    LoadModel,
    LoadProgressed,
    ModelLoaded,
    ModelPlanned,
    ModelPrepared,
    PlanModel,
    PrepareCancelled,
    PrepareModel,
    PreparePhase,
    PrepareProgressed,
    Reply,
)
from runtime.protocol.model import LoadedModel, LoadStage
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import WeightFormat

_KINDS = {
    LoadStage.START: ProgressKind.START,
    LoadStage.DENSE: ProgressKind.DENSE,
    LoadStage.EXPERTS: ProgressKind.EXPERTS,
}


_PHASES = {
    PreparePhase.READING_TEXT: ProgressKind.READ_TEXT,
    PreparePhase.TRYING_PARTS: ProgressKind.TRY_PARTS,
    PreparePhase.TRYING_FORMATS: ProgressKind.TRY_FORMATS,
    PreparePhase.WRITING: ProgressKind.PREPARE,
}


@dataclasses.dataclass(frozen=True, slots=True)
class LoadWish:
    """Which model to load, and how."""

    folder: str
    kind: PlanKind | None
    """None takes the recommended plan."""
    limits: Limits
    mix: "MixOrder | None" = None
    """A copy of mixed bits that is to be written first."""


@dataclasses.dataclass(frozen=True, slots=True)
class MixOrder:
    """A copy of mixed bits: what all its weights may take, and the text that says what counts."""

    size_bytes: int
    text: str = ""
    """Path of a text of the person's; empty for the one that comes along, or was read before."""


class LoadStep(enum.Enum):
    """What is being done about a wish."""

    NONE = "none"
    PLAN = "plan"
    PREPARE = "prepare"
    LOAD = "load"


class LoadListener:
    """What the flow tells its owner; every method may start something new."""

    def on_load_changed(self) -> None:
        """``step`` or ``is_cancelling`` changed."""

    def on_load_progressed(self) -> None:
        """``progress`` changed."""

    def on_load_planned(self, plan: PlacementPlan) -> None:
        """This plan is carried out."""

    def on_load_prepared(self, num_bytes: int) -> None:
        """A copy of so many bytes is complete."""

    def on_load_ready(self, *, was_prepared: bool) -> bool:
        """Return whether this runtime can load a model; if not, the wish waits for the next."""
        return True

    def on_load_done(self, model: LoadedModel) -> None:
        """The wish came true."""

    def on_load_ended(self, error: ErrorReport | None, *, is_engine_used: bool) -> None:
        """The wish was given up: by the person, or because of an error.

        ``is_engine_used`` says that the runtime has loaded parts of a model.
        """


class LoadFlow:
    """Carries out one wish at a time in the runtime that is there."""

    def __init__(self, send: Send, listener: LoadListener, clock: Callable[[], float]) -> None:
        self._send = send
        self._listener = listener
        self._clock = clock
        self._meter = ProgressMeter()
        self._request_id: int | None = None
        self._was_prepared = False
        self.wish: LoadWish | None = None
        self.step = LoadStep.NONE
        self.progress: Progress | None = None
        self.plan: PlacementPlan | None = None
        """The plan that is carried out, or was last."""
        self.is_cancelling = False
        self.is_ready = False
        """The wish can be loaded, and waits for a runtime that has loaded nothing."""

    def want(self, wish: LoadWish) -> None:
        """Take a new wish; ``resume`` begins with it."""
        self._reset()
        self.wish = wish
        self._was_prepared = False

    def resume(self) -> None:
        """Begin with the wish, if there is one and the runtime listens."""
        if self.wish is not None and self._request_id is None:
            self._ask_for_plan(self.wish)

    def cancel(self) -> None:
        """Give up the wish; what was begun in the runtime is told to stop."""
        if self.wish is None or self.is_cancelling:
            return
        target = self._request_id
        if target is None or self.step is LoadStep.PLAN:
            self._end(None)
            return
        self.is_cancelling = True
        self._send(
            lambda request_id: CancelRequest(request_id=request_id, target_request_id=target),
            ignore,
        )
        self._listener.on_load_changed()

    def lose_runtime(self) -> None:
        """Take note that nothing asked will be answered; the wish stays."""
        wish = self.wish
        self._reset()
        self.wish = wish

    def drop_wish(self) -> None:
        """Forget the wish without telling anybody."""
        self._reset()

    def _reset(self) -> None:
        self._request_id = None
        self.wish = None
        self.step = LoadStep.NONE
        self.progress = None
        self.is_cancelling = False
        self.is_ready = False

    def _enter(self, step: LoadStep, request_id: int | None) -> None:
        self._request_id = request_id
        self.step = step if request_id is not None else LoadStep.NONE
        self.progress = None
        self._listener.on_load_changed()

    def _ask_for_plan(self, wish: LoadWish) -> None:
        request_id = self._send(
            lambda request_id: PlanModel(
                request_id=request_id,
                folder=wish.folder,
                budgets=wish.limits.budgets,
                context_tokens=wish.limits.context_tokens,
                kind=wish.kind,
            ),
            self._on_reply,
        )
        self._enter(LoadStep.PLAN, request_id)

    def _on_reply(self, event: Reply) -> None:
        if self.wish is None or event.request_id != self._request_id:
            return
        if isinstance(event, PrepareProgressed):
            kind = _PHASES[event.phase]
            self._progress(kind, event.done_bytes, event.total_bytes, event.bytes_per_s)
        elif isinstance(event, LoadProgressed):
            self._progress(_KINDS[event.stage], event.done_bytes, event.total_bytes)
        elif isinstance(event, CommandFailed):
            self._end(None if self.is_cancelling else event.error)
        elif self.is_cancelling or isinstance(event, PrepareCancelled | LoadCancelled):
            self._end(None)
        elif isinstance(event, ModelPlanned):
            self._carry_out(self.wish, event)
        elif isinstance(event, ModelPrepared):
            self._was_prepared = True
            self._listener.on_load_prepared(event.size_bytes)
            self._ask_for_plan(self.wish)
        elif isinstance(event, ModelLoaded):
            self._reset()
            self._listener.on_load_done(event.model)

    def _progress(
        self, kind: ProgressKind, done: int, total: int, bytes_per_s: float | None = None
    ) -> None:
        self.progress = self._meter.take(kind, done, total, self._clock(), bytes_per_s)
        self._listener.on_load_progressed()

    def _carry_out(self, wish: LoadWish, event: ModelPlanned) -> None:
        """Go on with the plan of the wished kind, or the recommended one.

        A wish for more context than the model can do is cut, and planned again.
        """
        limits = fitted(wish.limits, event.report)
        if limits != wish.limits:
            self.wish = dataclasses.replace(wish, limits=limits)
            self._ask_for_plan(self.wish)
            return
        by_kind = {plan.kind: plan for plan in event.plans}
        plan = by_kind.get(wish.kind) if wish.kind else None
        if wish.mix is not None and event.report.is_runnable:
            if not self._was_prepared:
                self._prepare_mix(wish, wish.mix)
                return
            if plan is None:
                self._end(_copy_lost(wish))
                return
        if plan is None and event.recommended is not None:
            plan = by_kind.get(event.recommended)
        if plan is None or plan.problem is not None:
            self._end(_problem(plan, event))
            return
        if plan.needs_prepare and self._was_prepared:
            self._end(_copy_lost(wish))
            return
        self.plan = plan
        if plan.needs_prepare:
            self._listener.on_load_planned(plan)
            request_id = self._send(
                lambda request_id: PrepareModel(
                    request_id=request_id,
                    folder=wish.folder,
                    expert_format=plan.expert_format,
                ),
                self._on_reply,
            )
            self._enter(LoadStep.PREPARE, request_id)
        elif self._listener.on_load_ready(was_prepared=self._was_prepared):
            self._listener.on_load_planned(plan)
            request_id = self._send(
                lambda request_id: LoadModel(request_id=request_id, plan=plan), self._on_reply
            )
            self._enter(LoadStep.LOAD, request_id)
        else:
            self.is_ready = True
            self._enter(LoadStep.NONE, None)

    def _prepare_mix(self, wish: LoadWish, mix: MixOrder) -> None:
        request_id = self._send(
            lambda request_id: PrepareModel(
                request_id=request_id,
                folder=wish.folder,
                expert_format=WeightFormat.Q4A_G32,
                mix_bytes=mix.size_bytes,
                calibration_text=mix.text,
            ),
            self._on_reply,
        )
        self._enter(LoadStep.PREPARE, request_id)

    def _end(self, error: ErrorReport | None) -> None:
        is_engine_used = self.step is LoadStep.LOAD
        self._reset()
        self._listener.on_load_ended(error, is_engine_used=is_engine_used)


def _copy_lost(wish: LoadWish) -> ErrorReport:
    return ErrorReport(
        code=ErrorCode.COPY_LOST,
        severity=Severity.MODEL,
        parameters={"folder": wish.folder},
    )


def _problem(plan: PlacementPlan | None, event: ModelPlanned) -> ErrorReport:
    """Return why none of these plans can be carried out."""
    found = [plan.problem] if plan is not None else [item.problem for item in event.plans]
    problems = [problem for problem in [*found, *event.report.problems] if problem is not None]
    if problems:
        return problems[0]
    return ErrorReport(
        code=ErrorCode.NOT_A_MODEL,
        severity=Severity.MODEL,
        parameters={"folder": event.report.folder, "reason": "no plan could be made"},
    )
