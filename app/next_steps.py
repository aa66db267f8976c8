"""What the buttons beside errors and beside the warning about the drive do."""

from collections.abc import Callable

from app.state.drive_warning import Remedy, RemedyKind, budgets_of
from app.state.live_budgets import LiveBudgets
from app.state.session import Session
from app.state.settings import SettingsState
from app.text.error_heads import NextStep
from app.views.main_window import MainWindow
from app.views.rail import Page


class NextSteps:
    """Takes the step that a person chose.

    Threads: window thread.
    """

    def __init__(
        self,
        window: MainWindow,
        session: Session,
        settings: SettingsState,
        begin_chat: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        self._window = window
        self._session = session
        self._settings = settings
        self._begin_chat = begin_chat
        self._stop = stop

    def take(self, step: NextStep) -> None:
        """Do it."""
        match step:
            case NextStep.MODELS | NextStep.PLANS:
                self._window.show_page(Page.MODELS)
            case NextStep.NEW_CHAT:
                self._begin_chat()
            case NextStep.STOP:
                self._stop()
            case NextStep.SETTINGS:
                self._window.show_page(Page.SETTINGS)
            case NextStep.LOAD_AGAIN:
                self._load_again()
            case NextStep.RESTART:
                self._session.restart_runtime()

    def take_remedy(self, remedy: Remedy, live: LiveBudgets) -> None:
        """Do what would help; where that is another model, go where it can be chosen."""
        plan, loaded = remedy.plan, self._session.loaded
        if plan is None or loaded is None:
            self._window.show_page(Page.MODELS)
        elif remedy.kind is RemedyKind.MORE_MEMORY:
            live.carry_out(budgets_of(plan))
        else:
            self._session.load_folder(loaded.folder, plan.kind)

    def _load_again(self) -> None:
        """Load what was to be loaded, or else what was loaded last."""
        candidate, values = self._session.candidate, self._settings.values
        if candidate is not None:
            self._session.load_folder(candidate.folder, candidate.chosen)
        elif values.last_folder:
            self._session.load_folder(values.last_folder, values.last_plan)
        else:
            self._window.show_page(Page.MODELS)
