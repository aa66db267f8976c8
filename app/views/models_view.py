"""The Models page: what is on this PC, and the folder that is looked at."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.state.library import LibraryState
from app.state.session import Session
from app.state.stages import Stage
from app.text import phrases
from app.text.words import ModelWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.candidate_view import CandidateView
from app.views.drop_zone import DropZone
from app.views.empty_state import EmptyState
from app.views.model_card import ModelCard
from app.views.pieces import clear_layout, label

_BUSY = (Stage.PREPARING, Stage.LOADING, Stage.STOPPING)


class ModelsView(QWidget):
    """Shows ``LibraryState`` and the candidate of ``Session``; passes intents to both."""

    start_clicked = Signal()
    """The person started a model: the Chat page is what they want next."""

    def __init__(
        self,
        library: LibraryState,
        session: Session,
        palette: Palette,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._session = session
        self._palette = palette
        self.setProperty("look", "page")
        self._summary = label("", "dim")
        self._list = QVBoxLayout()
        self._list.setSpacing(metrics.GAP)
        self.drop_zone = DropZone()
        self.candidate_view = CandidateView(palette)
        self._empty = EmptyState()
        self._empty.show_state(
            ModelWords.EMPTY_TITLE, ModelWords.EMPTY_TEXT, ModelWords.CHOOSE_FOLDER
        )
        self._build()
        self._connect()
        self._show_library()
        self._show_candidate()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.addWidget(label(ModelWords.ON_THIS_PC, "heading"), 1)
        head.addWidget(self._summary)
        inside = QWidget()
        inside_layout = QVBoxLayout(inside)
        inside_layout.setContentsMargins(0, 0, 4, 0)
        inside_layout.addLayout(self._list)
        inside_layout.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(inside)
        left = QVBoxLayout()
        left.setSpacing(metrics.GAP)
        left.addLayout(head)
        left.addWidget(scroll, 1)
        left.addWidget(self.drop_zone)
        right = QVBoxLayout()
        right.addWidget(self._empty)
        right.addWidget(self.candidate_view)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(metrics.PAGE_MARGIN, 14, metrics.PAGE_MARGIN, metrics.PAGE_MARGIN)
        layout.setSpacing(metrics.GAP)
        layout.addLayout(left, 5)
        layout.addLayout(right, 6)

    def _connect(self) -> None:
        session, view = self._session, self.candidate_view
        self._library.changed.connect(self._show_library)
        session.changed.connect(self._show_candidate)
        session.progress_changed.connect(self._show_progress)
        self.drop_zone.folder_chosen.connect(session.drop_folder)
        self._empty.acted.connect(self.drop_zone.choose)
        view.plan_chosen.connect(session.choose_plan)
        view.ram_changed.connect(session.set_ram_budget)
        view.vram_changed.connect(session.set_vram_budget)
        view.context_changed.connect(session.set_context)
        view.cancel_wanted.connect(session.cancel)
        view.unload_wanted.connect(session.unload)
        view.start_wanted.connect(self._on_start_wanted)
        view.folder_wanted.connect(self.drop_zone.choose)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.candidate_view.show_palette(palette)
        self._show_library()

    def _loaded_folder(self) -> str:
        loaded = self._session.loaded
        return loaded.folder if loaded is not None else ""

    def _show_library(self) -> None:
        models = self._library.models
        candidate = self._session.candidate
        current = candidate.folder if candidate is not None else ""
        clear_layout(self._list)
        for model in models:
            card = ModelCard(
                model,
                self._palette,
                is_loaded=model.folder == self._loaded_folder(),
                is_current=model.folder == current,
            )
            card.chosen.connect(self._session.drop_folder)
            card.forget_wanted.connect(self._library.forget)
            self._list.addWidget(card)
        num_bytes = sum(model.report.file_bytes for model in models if model.report is not None)
        self._summary.setText(phrases.library_summary(len(models), num_bytes) if models else "")

    def _show_candidate(self) -> None:
        session = self._session
        candidate = session.candidate
        self._empty.setVisible(candidate is None)
        self.candidate_view.setVisible(candidate is not None)
        if candidate is not None:
            self.candidate_view.show_candidate(
                candidate,
                loaded_folder=self._loaded_folder(),
                is_busy=session.stage in _BUSY,
                machine=session.machine,
                limits=session.limits,
            )
        self._show_progress()
        self._show_library()

    def _show_progress(self) -> None:
        is_busy = self._session.stage in _BUSY
        self.candidate_view.show_progress(self._session.progress, is_busy=is_busy)

    def _on_start_wanted(self) -> None:
        self._session.prepare_and_load()
        self.start_clicked.emit()
