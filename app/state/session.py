"""The stage machine of the runtime and the model."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.state.candidate import Candidate
from app.state.progress import Progress
from app.state.stages import Stage
from runtime.protocol.chat import ChatMessage, SamplingSettings
from runtime.protocol.errors import ErrorReport
from runtime.protocol.machine import MachineReport
from runtime.protocol.messages import Reply
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlanKind


class Session(QObject):
    """What runs, what is loaded and which folder is looked at; takes the intents about them.

    Every intent returns at once and shows its effect through the signals. Threads: window thread.
    """

    changed = Signal()
    """Any property but ``progress`` changed; read them all again."""
    progress_changed = Signal()
    model_loaded = Signal(object)
    """A ``LoadedModel``."""
    failed = Signal(object)
    """An ``ErrorReport`` that a person has to see: also kept in ``error``."""
    sample_received = Signal(object)
    """A ``TelemetrySample``."""

    # what is true now
    stage: Stage
    error: ErrorReport | None
    candidate: Candidate | None
    progress: Progress | None
    loaded: LoadedModel | None
    machine: MachineReport | None
    ram_budget_bytes: int | None
    context_tokens: int

    # intents
    def start(self) -> None: ...
    def drop_folder(self, folder: str) -> None: ...
    def close_candidate(self) -> None: ...
    def choose_plan(self, kind: PlanKind) -> None: ...
    def set_ram_budget(self, ram_bytes: int | None) -> None: ...
    def set_context(self, context_tokens: int) -> None: ...
    def prepare_and_load(self) -> None: ...
    def load_folder(self, folder: str, kind: PlanKind | None = None) -> None:
        """Look at a folder and load it with this or the recommended plan (start-up, demo)."""
    def cancel(self) -> None: ...
    def unload(self) -> None: ...
    def restart_runtime(self) -> None: ...
    def dismiss_error(self) -> None: ...
    def watch_telemetry(self, interval_s: float) -> None: ...
    def shutdown(self) -> None:
        """End the runtime; returns only when the process is gone. For the end of the program."""

    # for ChatState
    def start_answer(
        self,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
        on_event: Callable[[Reply], None],
    ) -> bool: ...
    def stop_answer(self) -> None: ...
