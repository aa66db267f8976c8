"""The Models page: what is on this PC, the folder that is looked at, and what a hub has."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.state.library import LibraryState
from app.state.library_search import LibrarySearch
from app.state.model_removal import ModelRemoval
from app.state.session import Session
from app.state.stages import Stage
from app.text.discover_words import DiscoverWords
from app.text.library_words import LibraryWords
from app.text.words import ModelWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.candidate_view import CandidateView
from app.views.discover_view import DiscoverView
from app.views.empty_state import EmptyState
from app.views.library_view import LibraryView
from app.views.pieces import button

MIN_WIDTH_OF_TWO_COLUMNS = 860
"""In a narrower page the list and the model that is looked at take turns."""
_BUSY = (Stage.PREPARING, Stage.LOADING, Stage.STOPPING)


class ModelsView(QWidget):
    """Shows the list of models and the candidate of ``Session``; passes intents to both."""

    start_clicked = Signal()
    """The person started a model: the Chat page is what they want next."""
    settings_wanted = Signal()
    """The person wants to see the figures of this PC in the settings."""

    def __init__(
        self,
        library: LibraryState,
        search: LibrarySearch,
        removal: ModelRemoval,
        session: Session,
        palette: Palette,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._search = search
        self._session = session
        self._make_discover: Callable[[], DiscoverView] | None = None
        self.discover_view: DiscoverView | None = None
        """Made when it is first wanted."""
        self.here_tab = button(ModelWords.ON_THIS_PC, "tab")
        self.discover_tab = button(DiscoverWords.DISCOVER, "tab")
        self._tabs = QWidget()
        self._parts = QStackedWidget()
        self.setProperty("look", "page")
        self.library_view = LibraryView(library, search, removal, palette)
        self.drop_zone = self.library_view.drop_zone
        self.candidate_view = CandidateView(palette)
        self.back_button = button(LibraryWords.BACK, "quiet")
        """In a narrow page, from the model that is looked at to the list."""
        self._is_narrow = False
        self._is_list_wanted = False
        self._shown_folder = ""
        self._empty = EmptyState()
        self._empty.show_state(
            ModelWords.EMPTY_TITLE, ModelWords.EMPTY_TEXT, ModelWords.CHOOSE_FOLDER
        )
        self._build()
        self._connect()
        self._show_candidate()

    def take_discover(self, make: Callable[[], DiscoverView]) -> None:
        """Show a second part beside the models of this PC, made when it is first wanted."""
        self._make_discover = make
        self._tabs.show()

    def show_discover(self) -> None:
        """Show what a hub has."""
        self.discover_tab.click()

    def _build(self) -> None:
        right = QVBoxLayout()
        right.setSpacing(4)
        right.addWidget(self.back_button, 0, Qt.AlignmentFlag.AlignLeft)
        right.addWidget(self._empty)
        right.addWidget(self.candidate_view)
        here = QWidget()
        halves = QHBoxLayout(here)
        halves.setContentsMargins(0, 0, 0, 0)
        halves.setSpacing(metrics.GAP)
        halves.addWidget(self.library_view, 5)
        halves.addLayout(right, 6)
        self._parts.addWidget(here)
        tabs = QHBoxLayout(self._tabs)
        tabs.setContentsMargins(0, 0, 0, 0)
        for tab in (self.here_tab, self.discover_tab):
            tab.setCheckable(True)
            tabs.addWidget(tab)
        tabs.addStretch(1)
        self.here_tab.setChecked(True)
        self._tabs.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(metrics.PAGE_MARGIN, 14, metrics.PAGE_MARGIN, metrics.PAGE_MARGIN)
        layout.setSpacing(metrics.GAP)
        layout.addWidget(self._tabs)
        layout.addWidget(self._parts, 1)

    def _connect(self) -> None:
        session, view = self._session, self.candidate_view
        self.here_tab.clicked.connect(lambda: self._show_part(0))
        self.discover_tab.clicked.connect(self._on_discover_clicked)
        session.changed.connect(self._show_candidate)
        session.progress_changed.connect(self._show_progress)
        self.library_view.model_chosen.connect(self._look_at)
        self.drop_zone.folder_chosen.connect(self._look_at)
        self.back_button.clicked.connect(lambda: self._want_list(is_wanted=True))
        self._empty.acted.connect(self.drop_zone.choose)
        view.plan_chosen.connect(session.choose_plan)
        view.ram_changed.connect(session.budgets.set_ram)
        view.vram_changed.connect(session.budgets.set_vram)
        view.context_changed.connect(session.budgets.set_context)
        view.cancel_wanted.connect(session.cancel)
        view.unload_wanted.connect(session.unload)
        view.start_wanted.connect(self._on_start_wanted)
        view.mix_wanted.connect(session.order_mix)
        view.folder_wanted.connect(self.drop_zone.choose)
        view.settings_wanted.connect(self.settings_wanted)
        view.root_wanted.connect(self._on_root_wanted)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        if self.discover_view is not None:
            self.discover_view.show_palette(palette)
        self.candidate_view.show_palette(palette)
        self.library_view.show_palette(palette)

    def show_here(self, folder: str) -> None:
        """Show the models of this PC, and look at one of them."""
        self.here_tab.click()
        self._look_at(folder)

    def _on_discover_clicked(self) -> None:
        if self.discover_view is None:
            assert self._make_discover is not None, "the button is shown with what it shows"
            self.discover_view = self._make_discover()
            self.discover_view.folder_chosen.connect(self.show_here)
            self._parts.addWidget(self.discover_view)
        self._show_part(self._parts.indexOf(self.discover_view))

    def _show_part(self, index: int) -> None:
        """Show one part, and which it is; both buttons keep their turn when Tab is pressed."""
        self._parts.setCurrentIndex(index)
        self.here_tab.setChecked(index == 0)
        self.discover_tab.setChecked(index != 0)

    def _look_at(self, folder: str) -> None:
        self._session.drop_folder(folder)
        self._want_list(is_wanted=False)

    def _want_list(self, *, is_wanted: bool) -> None:
        """In a narrow page, show the list or the model that is looked at."""
        self._is_list_wanted = is_wanted
        self._show_columns()

    def _show_columns(self) -> None:
        """Show both columns where there is room, else one of them."""
        has_candidate = self._session.candidate is not None
        is_list_alone = self._is_narrow and (self._is_list_wanted or not has_candidate)
        is_candidate_alone = self._is_narrow and not is_list_alone
        self.library_view.setVisible(not is_candidate_alone)
        self.back_button.setVisible(is_candidate_alone)
        self._empty.setVisible(not has_candidate and not is_list_alone)
        self.candidate_view.setVisible(has_candidate and not is_list_alone)

    def _loaded_folder(self) -> str:
        loaded = self._session.loaded
        return loaded.folder if loaded is not None else ""

    def _show_candidate(self) -> None:
        session = self._session
        candidate = session.candidate
        folder = candidate.folder if candidate is not None else ""
        if folder != self._shown_folder:
            # Another one was dropped, or is being loaded.
            self._shown_folder = folder
            self._is_list_wanted = False
        self._show_columns()
        if candidate is not None:
            self.candidate_view.show_candidate(
                candidate,
                loaded_folder=self._loaded_folder(),
                is_busy=session.stage in _BUSY,
                machine=session.machine,
                limits=session.budgets.limits(),
            )
        self._show_progress()
        current = candidate.folder if candidate is not None else ""
        if candidate is not None and candidate.report is not None:
            current = candidate.report.folder
        self.library_view.show_places(self._loaded_folder(), current)

    def _show_progress(self) -> None:
        is_busy = self._session.stage in _BUSY
        self.candidate_view.show_progress(self._session.progress, is_busy=is_busy)

    def _on_start_wanted(self) -> None:
        self._session.prepare_and_load()
        self.start_clicked.emit()

    def _on_root_wanted(self, folder: str) -> None:
        """List what lies in a folder of several models, in place of looking at it."""
        self._session.close_candidate()
        self._search.add_root(folder)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stand in two columns, or show one at a time."""
        super().resizeEvent(event)
        is_narrow = self.width() < MIN_WIDTH_OF_TWO_COLUMNS
        if is_narrow != self._is_narrow:
            self._is_narrow = is_narrow
            self._show_columns()
