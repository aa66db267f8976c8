"""The messages. Commands go from the window to the runtime, events come back.

Each command carries a ``request_id`` chosen by the window and gets exactly one *closing* event
with that id: the one named in its docstring, or ``CommandFailed``. Progress events may come before.
"""

import enum

from runtime.protocol.base import Command as Command  # noqa: PLC0414 - told on
from runtime.protocol.base import Event as Event  # noqa: PLC0414 - told on
from runtime.protocol.base import Reply as Reply  # noqa: PLC0414 - told on
from runtime.protocol.chat import ChatMessage, FinishReason, GenerationStats, SamplingSettings
from runtime.protocol.engine_messages import EngineFetched, FetchEngine
from runtime.protocol.errors import ErrorReport
from runtime.protocol.figure_messages import (
    DescribeFigures,
    FiguresDescribed,
    StatedFigures,
    StateFigure,
)
from runtime.protocol.hub_messages import (
    DownloadProgressed,
    ForecastModels,
    HubClosing,
    HubCommand,
    ModelsForecast,
)
from runtime.protocol.machine import MachineReport
from runtime.protocol.model import LoadedModel, LoadStage, ModelReport
from runtime.protocol.plan import BudgetCurve, PlacementPlan, PlanKind
from runtime.protocol.search import FolderWeight, RootState
from runtime.protocol.telemetry import TelemetrySample
from runtime.protocol.update_messages import (
    CheckForUpdate,
    FetchUpdate,
    UpdateChecked,
    UpdateFetched,
)
from runtime.protocol.values import Budgets, WeightFormat


class OpenSession(Command):
    """First frame of the window. Closed by ``SessionOpened``."""

    protocol_version: int
    client_name: str


class InspectModel(Command):
    """Read the headers of a folder. Closed by ``ModelInspected``, also for a broken model."""

    folder: str


class FindModels(Command):
    """Look for models below places. Closed by ``ModelsSearched`` or ``SearchCancelled``."""

    roots: list[str]


class WeighModel(Command):
    """Tell what deleting a model would take away. Closed by ``ModelWeighed``."""

    folder: str


class PlanModel(Command):
    """Plan a folder under budgets. Closed by ``ModelPlanned``."""

    folder: str
    budgets: Budgets = Budgets()
    context_tokens: int = 0
    """0 lets the planner choose."""
    kind: PlanKind | None = None
    """A kind that was chosen and has a plan even where nothing speaks for it any more."""


class PlanBudgets(Command):
    """Work out what a kind of plan would do under many budgets. Closed by ``BudgetsPlanned``."""

    folder: str
    kind: PlanKind
    context_tokens: int = 0
    """As in ``PlanModel``."""


class PrepareModel(Command):
    """Write the prepared copy that a plan needs.

    Closed by ``ModelPrepared`` or ``PrepareCancelled``.
    """

    folder: str
    expert_format: WeightFormat
    output_folder: str = ""
    """Empty: the default place for this model and format."""
    mix_bytes: int = 0
    """What all weights of a copy of mixed bits may take, whose most common format is chosen; 0: a
    copy in the format."""
    calibration_text: str = ""
    """Path of a text to read with the model before bits are mixed; empty: what was read before,
    else the text that comes along."""


class LoadModel(Command):
    """Load under a plan. Closed by ``ModelLoaded`` or ``LoadCancelled``."""

    plan: PlacementPlan


class StartGeneration(Command):
    """Answer a conversation. Closed by ``GenerationFinished`` or ``GenerationCancelled``.

    One that ends with an answer has that answer continued: from its ids, as if it had never been
    cut, or from its text where there are none.
    """

    conversation: list[ChatMessage]
    sampling: SamplingSettings = SamplingSettings()


class CountTokens(Command):
    """Count the prompt tokens of a conversation. Closed by ``TokensCounted``."""

    conversation: list[ChatMessage]


class CancelRequest(Command):
    """End another request. Closed by ``CancelAccepted``; the other closes as cancelled."""

    target_request_id: int


class DescribeMachine(Command):
    """Tell what this PC has. Closed by ``MachineDescribed``."""

    folders: list[str] = []
    """Folders whose drives are wanted."""
    is_thorough: bool = False
    """Whether drives are measured with few and with many reads in flight: a second or two more."""


class WatchTelemetry(Command):
    """Start or stop the samples. Closed by ``TelemetryWatched``."""

    interval_s: float
    """0 stops them."""


class SetBudgets(Command):
    """Change the loaded model's budgets at the next step. Closed by ``BudgetsSet``.

    The model stays the same in everything but where its experts lie. Of several in a row the
    newest counts; the others close with it.
    """

    budgets: Budgets


class StopRuntime(Command):
    """End the process in an orderly way. Closed by ``RuntimeStopped``, the last frame."""


class SessionOpened(Reply):
    """First frame of the runtime."""

    protocol_version: int
    runtime_version: str
    process_id: int


class ModelInspected(Reply):
    """What the headers say."""

    report: ModelReport


class ModelsFound(Reply):
    """Models below a place that is being looked through, and how much was looked at."""

    root: str
    reports: list[ModelReport]
    num_folders: int
    """Of the whole search up to now."""


class RootSearched(Reply):
    """One place was looked through."""

    root: str
    state: RootState
    num_models: int
    num_unreadable: int
    """Folders that this person may not read."""
    is_complete: bool
    """Whether the place is not larger or deeper than what is looked at."""


class ModelsSearched(Reply):
    """All places were looked through."""


class SearchCancelled(Reply):
    """The search was stopped; what was found before stays valid."""


class ModelWeighed(Reply):
    """What would go with a model."""

    weight: FolderWeight


class ModelPlanned(Reply):
    """The plans that could be made, best first, loadable or not, and the recommended kind.

    ``recommended`` is None if none can be loaded; each plan's ``problem`` says why.
    """

    report: ModelReport
    plans: list[PlacementPlan]
    recommended: PlanKind | None
    stated: StatedFigures | None = None
    """Figures of this PC that the plans take from the person; None where all are as found."""


class BudgetsPlanned(Reply):
    """What the kind of plan would do; None where the folder has no such plan."""

    curve: BudgetCurve | None


class PreparePhase(enum.StrEnum):
    """What a preparation is at; a copy that is not mixed is only written."""

    READING_TEXT = "reading_text"
    """Amounts are tokens."""
    TRYING_PARTS = "trying_parts"
    """One group of matrices after the other is rounded; amounts are groups."""
    TRYING_FORMATS = "trying_formats"
    WRITING = "writing"


class PrepareProgressed(Reply):
    """How far the preparation is."""

    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    """Of what is left, where it is known to go faster or slower than what was done."""
    phase: PreparePhase = PreparePhase.WRITING


class ModelPrepared(Reply):
    """The prepared copy is complete and verified."""

    folder: str
    expert_format: WeightFormat
    size_bytes: int


class PrepareCancelled(Reply):
    """Stopped; what was written is kept and a next start continues there."""

    kept_bytes: int


class LoadProgressed(Reply):
    """How far loading is."""

    stage: LoadStage
    done_bytes: int
    total_bytes: int


class ModelLoaded(Reply):
    """The model can be asked."""

    model: LoadedModel


class LoadCancelled(Reply):
    """Nothing is loaded; memory was given back."""


class GenerationStarted(Reply):
    """The prompt was read."""

    prompt_tokens: int
    reused_tokens: int
    context_tokens: int


class PrefillProgressed(Reply):
    """How much of the new part of the prompt was processed."""

    done_tokens: int
    total_tokens: int


class TokensGenerated(Reply):
    """New tokens and the text that became certain with them (may be empty).

    ``thinking`` goes on where the thinking of the events before ended, ``text`` where the answer
    did; neither has marks in it. An answer that is continued is told from its beginning again,
    though not its ids: what its last ones mean was not certain when it was cut.
    """

    token_ids: list[int]
    text: str
    thinking: str = ""


class GenerationFinished(Reply):
    """The answer ended by itself."""

    reason: FinishReason
    stats: GenerationStats


class GenerationCancelled(Reply):
    """The answer was stopped; what was sent before stays valid."""

    stats: GenerationStats


class TokensCounted(Reply):
    """Prompt tokens of the conversation and the room there is."""

    prompt_tokens: int
    context_tokens: int


class CancelAccepted(Reply):
    """The wish was passed on, or there was nothing left to cancel."""

    was_running: bool


class MachineDescribed(Reply):
    """What this PC has."""

    machine: MachineReport


class TelemetryWatched(Reply):
    """The interval in force, 0 if none."""

    interval_s: float


class BudgetsSet(Reply):
    """The budgets in force, with the plan they made."""

    model: LoadedModel
    plan: PlacementPlan


class RuntimeStopped(Reply):
    """The process leaves now."""


class CommandFailed(Reply):
    """The command could not be carried out."""

    error: ErrorReport


class TelemetrySampled(Event):
    """A measurement; the newest replaces older ones that were not sent yet."""

    sample: TelemetrySample


class BudgetsAdapted(Event):
    """The RAM of the loaded model followed what other programs leave, without being asked.

    The plan says why. What the person gave it is as before, and is in force again with room.
    """

    model: LoadedModel
    plan: PlacementPlan


class HeartbeatSent(Event):
    """Proof of life, every few seconds, also while the engine works."""

    uptime_s: float


class RuntimeFailed(Event):
    """An error that belongs to no command; the process ends after it."""

    error: ErrorReport


AnyCommand = (
    OpenSession
    | InspectModel
    | FindModels
    | WeighModel
    | PlanModel
    | PlanBudgets
    | ForecastModels
    | PrepareModel
    | LoadModel
    | StartGeneration
    | CountTokens
    | CancelRequest
    | DescribeMachine
    | DescribeFigures
    | StateFigure
    | WatchTelemetry
    | SetBudgets
    | HubCommand
    | CheckForUpdate
    | FetchUpdate
    | FetchEngine
    | StopRuntime
)
AnyEvent = (
    SessionOpened
    | ModelInspected
    | ModelsFound
    | RootSearched
    | ModelsSearched
    | SearchCancelled
    | ModelWeighed
    | ModelPlanned
    | BudgetsPlanned
    | ModelsForecast
    | PrepareProgressed
    | ModelPrepared
    | PrepareCancelled
    | LoadProgressed
    | ModelLoaded
    | LoadCancelled
    | GenerationStarted
    | PrefillProgressed
    | TokensGenerated
    | GenerationFinished
    | GenerationCancelled
    | TokensCounted
    | CancelAccepted
    | MachineDescribed
    | FiguresDescribed
    | TelemetryWatched
    | BudgetsSet
    | HubClosing
    | DownloadProgressed
    | UpdateChecked
    | UpdateFetched
    | EngineFetched
    | RuntimeStopped
    | CommandFailed
    | TelemetrySampled
    | BudgetsAdapted
    | HeartbeatSent
    | RuntimeFailed
)

ClosingEvent = (
    SessionOpened
    | ModelInspected
    | ModelsSearched
    | SearchCancelled
    | ModelWeighed
    | ModelPlanned
    | BudgetsPlanned
    | ModelsForecast
    | ModelPrepared
    | PrepareCancelled
    | ModelLoaded
    | LoadCancelled
    | GenerationFinished
    | GenerationCancelled
    | TokensCounted
    | CancelAccepted
    | MachineDescribed
    | FiguresDescribed
    | TelemetryWatched
    | BudgetsSet
    | HubClosing
    | UpdateChecked
    | UpdateFetched
    | EngineFetched
    | RuntimeStopped
    | CommandFailed
)
"""Every command ends with exactly one of these."""
