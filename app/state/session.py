"""The stage machine of the runtime and the model."""

import dataclasses
import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.link.client import RuntimeClient, RuntimeEnd
from app.link.process import ProcessOutcome
from app.state.answer_flow import AnswerFlow, ignore
from app.state.candidate import Candidate
from app.state.candidate_flow import CandidateFlow
from app.state.library import LibraryState
from app.state.load_flow import LoadFlow, LoadListener, LoadStep, LoadWish, MixOrder
from app.state.model_budgets import ModelBudgets
from app.state.progress import Progress
from app.state.settings import SettingsState
from app.state.stages import Stage, StageFacts, stage_of
from app.timers import single_shot
from runtime.protocol.chat import ChatMessage, SamplingSettings
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.framing import FrameError
from runtime.protocol.machine import MachineReport
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    BudgetsAdapted,
    BudgetsSet,
    DescribeMachine,
    GenerationCancelled,
    GenerationFinished,
    MachineDescribed,
    Reply,
    TelemetrySampled,
    WatchTelemetry,
)
from runtime.protocol.model import LoadedModel, ModelReport
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Budgets

CANCEL_WAIT_MS = 1500
"""A load or preparation that has not stopped by then is ended with its process."""
STOP_WAIT_MS = 20_000
"""The same for an answer; one layer that comes from a slow drive may take seconds."""


class Session(QObject, LoadListener):
    """What runs, what is loaded and which folder is looked at; takes the intents about them.

    Every intent but ``shutdown`` returns at once and shows its effect through the signals. One
    loaded model is one runtime process: unloading and switching end it and start the next. A model
    that has to be prepared first is prepared beside the loaded one, which can be asked meanwhile.
    Threads: window thread.
    """

    changed = Signal()
    """Any property but ``progress`` changed; read them all again."""
    progress_changed = Signal()
    model_loaded = Signal(object)
    """A ``LoadedModel``."""
    answer_lost = Signal()
    """The runtime is gone in the middle of an answer."""
    failed = Signal(object)
    """An ``ErrorReport`` that a person has to see; it stays in ``error``."""
    copy_written = Signal(object)
    """Bytes of a prepared copy that is complete."""
    sample_received = Signal(object)
    """A ``TelemetrySample``."""

    def __init__(
        self,
        client: RuntimeClient,
        settings: SettingsState,
        library: LibraryState,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._settings = settings
        self._library = library
        self.budgets = ModelBudgets(
            client.send,
            settings,
            loaded=lambda: self._loaded,
            changed=self._replan,
            taken=self._take_budgets,
        )
        """What models may use: the person's wishes, and the loaded model's."""
        self._candidates = CandidateFlow(client.send, self.budgets.limits, self.changed.emit)
        self._load = LoadFlow(client.send, self, clock)
        self._loaded: LoadedModel | None = None
        self._loaded_wish: LoadWish | None = None
        self._loaded_plan: PlacementPlan | None = None
        self._machine: MachineReport | None = None
        self._error: ErrorReport | None = None
        self._outcome: ProcessOutcome | None = None
        self._is_dead = False
        self._is_replacing = False
        self._answers = AnswerFlow(client.send, self._on_answer_ended)
        self._watch_interval_s = 0.0
        self._cancel_patience = single_shot(self, CANCEL_WAIT_MS, self._on_cancel_patience_ended)
        self._stop_patience = single_shot(self, STOP_WAIT_MS, self._on_stop_patience_ended)
        client.opened.connect(self._on_opened)
        client.event_received.connect(self._on_event)
        client.ended.connect(self._on_ended)

    @property
    def stage(self) -> Stage:
        """The one stage that the window shows."""
        candidate = self._candidates.candidate
        return stage_of(
            StageFacts(
                is_failed=self._is_dead,
                is_open=self._client.is_open,
                is_ending=self._is_replacing or self._load.is_cancelling,
                is_preparing=self._load.step is LoadStep.PREPARE,
                wants_load=self._load.wish is not None,
                is_loaded=self._loaded is not None,
                is_answering=self._answers.is_running,
                is_inspecting=candidate is not None and candidate.is_inspecting,
                is_planning=candidate is not None and candidate.is_planning,
                has_plans=candidate is not None and bool(candidate.plans),
            )
        )

    @property
    def error(self) -> ErrorReport | None:
        """What failed last, until it is dismissed or something new is begun."""
        return self._error

    @property
    def outcome(self) -> ProcessOutcome | None:
        """How the last runtime that failed ended."""
        return self._outcome

    @property
    def candidate(self) -> Candidate | None:
        """The folder that is looked at."""
        return self._candidates.candidate

    @property
    def progress(self) -> Progress | None:
        """How far preparing or loading is."""
        return self._load.progress

    @property
    def loading_folder(self) -> str:
        """The folder that is wanted and not loaded yet; empty if there is none."""
        return self._load.wish.folder if self._load.wish is not None else ""

    @property
    def loaded(self) -> LoadedModel | None:
        """The model that can be asked."""
        return self._loaded

    @property
    def loaded_report(self) -> ModelReport | None:
        """What inspecting the loaded model found."""
        return self._library.report_of(self._loaded.folder) if self._loaded is not None else None

    def name_of(self, folder: str) -> str:
        """Return what the model in a folder is called; empty if it was never inspected."""
        report = self._library.report_of(folder)
        return report.name if report is not None else ""

    @property
    def loaded_plan(self) -> PlacementPlan | None:
        """The plan of the loaded model, with its forecast."""
        return self._loaded_plan if self._loaded is not None else None

    @property
    def loaded_budgets(self) -> Budgets:
        """What the loaded model was asked to take; what is left out follows what fits."""
        return self._loaded_wish.limits.budgets if self._loaded_wish is not None else Budgets()

    @property
    def machine(self) -> MachineReport | None:
        """What this PC has; None until the runtime told it."""
        return self._machine

    @property
    def can_answer(self) -> bool:
        """Whether ``start_answer`` would be accepted."""
        if self._loaded is None or self._answers.is_running:
            return False
        return self.stage in (Stage.READY, Stage.PREPARING)

    def start(self) -> None:
        """Start the runtime."""
        self._is_dead = False
        self._client.start()
        self.changed.emit()

    def drop_folder(self, folder: str, kind: PlanKind | None = None) -> None:
        """Inspect and plan a folder, beside the loaded model; choose this or the best plan."""
        self._error = None
        self._start_if_dead()
        self._candidates.drop(folder, kind)

    def close_candidate(self) -> None:
        """Look at no folder any more."""
        self._candidates.close()

    def choose_plan(self, kind: PlanKind) -> None:
        """Choose the plan that ``prepare_and_load`` carries out."""
        self._candidates.choose(kind)

    def prepare_and_load(self) -> None:
        """Carry out the chosen plan of the candidate, in place of the loaded model."""
        candidate = self._candidates.candidate
        if candidate is not None and candidate.can_load:
            self._want(LoadWish(candidate.folder, candidate.chosen, self.budgets.limits()))

    def load_folder(self, folder: str, kind: PlanKind | None = None) -> None:
        """Look at a folder and load it with this or the recommended plan."""
        self._want(LoadWish(folder, kind, self.budgets.limits()))
        self._candidates.drop(folder)

    def order_mix(self, folder: str, order: MixOrder) -> None:
        """Have a copy of mixed bits of a model written, and load it."""
        self._want(LoadWish(folder, PlanKind.MIXED, self.budgets.limits(), order))

    def cancel(self) -> None:
        """Stop preparing or loading."""
        self._load.cancel()
        if self._load.is_cancelling:
            self._cancel_patience.start()

    def unload(self) -> None:
        """Give back all memory of the loaded model."""
        if self._loaded is not None:
            self._load.drop_wish()
            self._replace_runtime()

    def restart_runtime(self) -> None:
        """Start again after a failure, with the model that was loaded then."""
        if self._is_dead:
            self._error = None
            wish = self._loaded_wish
            if wish is not None:
                self._load.want(wish)
            self._start_if_dead()

    def ask(self, make: Callable[[int], AnyCommand], listener: Callable[[Reply], None]) -> bool:
        """Send a question about this PC; False while no runtime listens."""
        return self._client.send(make, listener) is not None

    def look_at_machine(self, *, is_changed: bool = True) -> None:
        """Learn anew what this PC has; where that was changed, plan again what is looked at."""
        self._client.send(
            lambda request_id: DescribeMachine(request_id=request_id), self._on_machine
        )
        if is_changed:
            self._replan()

    def dismiss_error(self) -> None:
        """The person has read the error."""
        self._error = None
        self.changed.emit()

    def watch_telemetry(self, interval_s: float) -> None:
        """Ask for samples, now and after every restart; 0 ends them."""
        self._watch_interval_s = interval_s
        self._client.send(
            lambda request_id: WatchTelemetry(request_id=request_id, interval_s=interval_s),
            ignore,
        )

    def shutdown(self) -> None:
        """End the runtime; returns only when the process is gone. For the end of the program."""
        self._load.drop_wish()
        self._candidates.close()
        self._client.end_now()

    def start_answer(
        self,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
        listener: Callable[[Reply], None],
    ) -> bool:
        """Ask the model; False if that is not possible now.

        The listener gets every event of the answer; after ``answer_lost`` no more will come.
        """
        if not self.can_answer:
            return False
        try:
            is_started = self._answers.start(conversation, sampling, listener)
        except FrameError as error:
            self._error = ErrorReport(
                code=ErrorCode.CONVERSATION_INVALID,
                severity=Severity.REQUEST,
                parameters={"reason": str(error)},
            )
            self.failed.emit(self._error)
            return False
        self._error = None
        self.changed.emit()
        return is_started

    def count_tokens(
        self, conversation: Sequence[ChatMessage], listener: Callable[[Reply], None]
    ) -> bool:
        """Have the loaded model count a conversation; False if that is not possible."""
        return self._loaded is not None and self._answers.count(conversation, listener)

    def stop_answer(self) -> None:
        """Ask for the end of the answer that is being written."""
        self._answers.stop()
        if self._answers.is_running and not self._stop_patience.isActive():
            self._stop_patience.start()

    def _replan(self) -> None:
        self._candidates.replan()
        self.changed.emit()

    def _take_budgets(self, event: BudgetsSet) -> None:
        """Keep what is in force now, here and for the next start."""
        self._loaded = event.model
        self._loaded_plan = event.plan
        self._library.note_plan(event.plan)
        assert self._loaded_wish is not None
        self._loaded_wish = dataclasses.replace(self._loaded_wish, limits=self.budgets.limits())
        self.changed.emit()

    def _want(self, wish: LoadWish) -> None:
        """Begin with a wish, in the next runtime if this one is at work on another."""
        is_free = self._load.step in (LoadStep.NONE, LoadStep.PLAN)
        self._error = None
        self._load.want(wish)
        if self._is_dead or is_free:
            self._start_if_dead()
            self._load.resume()
            self.changed.emit()
        else:
            self._replace_runtime()

    def _start_if_dead(self) -> None:
        if self._is_dead:
            self.start()

    def _replace_runtime(self, *, at_once: bool = False) -> None:
        """End this runtime and start the next, which goes on with what is wanted."""
        self._is_replacing = True
        self._lose_model()
        self._client.stop(at_once=at_once)
        self.changed.emit()

    def _on_cancel_patience_ended(self) -> None:
        """End what does not stop; a model that was loaded beside it is loaded again."""
        self._load.drop_wish()
        if self._loaded is not None and self._loaded_wish is not None:
            self._load.want(self._loaded_wish)
        self._replace_runtime(at_once=True)

    def _on_stop_patience_ended(self) -> None:
        """End an engine that hangs, and load the model again."""
        assert self._loaded_wish is not None, "only a loaded model answers"
        self._load.want(self._loaded_wish)
        self._replace_runtime(at_once=True)

    def _lose_model(self) -> None:
        self._cancel_patience.stop()
        self._stop_patience.stop()
        self._loaded = None
        if self._answers.lose_runtime():
            self.answer_lost.emit()

    def _on_answer_ended(self, event: Reply) -> None:
        self._stop_patience.stop()
        if isinstance(event, GenerationFinished | GenerationCancelled) and self._loaded is not None:
            self._library.note_rate(self._loaded.folder, event.stats.decode_tokens_per_s)
        if self._load.is_ready:
            self._replace_runtime()
        self.changed.emit()

    def _on_opened(self) -> None:
        self._client.send(
            lambda request_id: DescribeMachine(request_id=request_id), self._on_machine
        )
        if self._watch_interval_s > 0:
            self.watch_telemetry(self._watch_interval_s)
        self._candidates.resume()
        self._load.resume()
        self.changed.emit()

    def _on_machine(self, event: Reply) -> None:
        if isinstance(event, MachineDescribed):
            self._machine = event.machine
            self.changed.emit()

    def _on_event(self, event: AnyEvent) -> None:
        if isinstance(event, TelemetrySampled):
            self.sample_received.emit(event.sample)
        elif isinstance(event, BudgetsAdapted):
            self._note_adapted(event)
        else:
            self._library.note(event)

    def _note_adapted(self, event: BudgetsAdapted) -> None:
        """Take what the model has now; what the person gave it stays, here and in the settings."""
        if self._loaded is not None:
            self._loaded, self._loaded_plan = event.model, event.plan
            self.changed.emit()

    def _on_ended(self, end: RuntimeEnd) -> None:
        self._candidates.lose_runtime(end.error)
        if self._is_replacing:
            self._is_replacing = False
            self._load.lose_runtime()
            self.start()
            return
        if end.error is None:
            self._lose_model()
            return
        # A model that was being loaded is not tried again by itself: it may be the cause.
        if self._loaded is None:
            self._loaded_wish = None
        self._load.drop_wish()
        self._is_dead = True
        self._outcome = end.outcome
        self._error = end.error
        self._lose_model()
        self.changed.emit()
        self.failed.emit(end.error)

    def on_load_changed(self) -> None:
        """Pass it on."""
        self.changed.emit()

    def on_load_progressed(self) -> None:
        """Pass it on."""
        self.progress_changed.emit()

    def on_load_planned(self, plan: PlacementPlan) -> None:
        """Keep the plan for the list of models."""
        self._library.note_plan(plan)

    def on_load_prepared(self, num_bytes: int) -> None:
        """Pass it on."""
        self.copy_written.emit(num_bytes)

    def on_load_ready(self, *, was_prepared: bool) -> bool:
        """Give up the loaded model only now; an answer begun while preparing ends first."""
        if self._loaded is None:
            return True
        if not (was_prepared and self._answers.is_running):
            self._replace_runtime()
        return False

    def on_load_done(self, model: LoadedModel) -> None:
        """Keep the model, here and for the next start."""
        plan = self._load.plan
        kind = plan.kind if plan is not None else None
        self._loaded = model
        self._loaded_plan = plan
        self._loaded_wish = LoadWish(model.folder, kind, self.budgets.limits())
        self._settings.change(last_folder=model.folder, last_plan=kind)
        self.changed.emit()
        self.model_loaded.emit(model)

    def on_load_ended(self, error: ErrorReport | None, *, is_engine_used: bool) -> None:
        """Show why, and start afresh if parts of a model may still be in memory."""
        self._cancel_patience.stop()
        self._error = error
        if is_engine_used:
            self._replace_runtime()
        self.changed.emit()
        if error is not None:
            self.failed.emit(error)
