"""The list of models on this PC, the search that keeps it, and the field to drop one."""

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.state.library import LibraryState
from app.state.library_search import LibrarySearch
from app.state.model_removal import ModelRemoval, Removal
from app.text import phrases
from app.text.library_words import LibraryWords, more_models, searching_line
from app.text.words import ModelWords
from app.theme import metrics
from app.theme.palette import Palette
from app.timers import single_shot
from app.views.delete_dialog import DeleteDialog
from app.views.drop_zone import DropZone
from app.views.model_card import ModelCard
from app.views.pieces import button, label, remove, scrolling
from app.views.roots_card import RootsCard

LOOK_INTERVAL_MS = 10_000
"""How often drives that are away are looked for while the list is seen."""
CARDS_AT_ONCE = 10
"""More new cards in one go would hold up the window."""
CARDS_SHOWN = 40
"""More are shown where a person asks for them: each makes laying out the page longer."""
NUM_TO_FILTER = 10
"""A list with more models has a field to find one in it."""
_GATHER_MS = 20


class LibraryView(QWidget):
    """Shows ``LibraryState`` and ``LibrarySearch``; cards stay while their model does."""

    model_chosen = Signal(str)

    def __init__(
        self,
        library: LibraryState,
        search: LibrarySearch,
        removal: ModelRemoval,
        palette: Palette,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._search = search
        self._removal = removal
        self._palette = palette
        self._loaded_folder = self._current_folder = ""
        self._cards: dict[str, ModelCard] = {}
        self._num_shown = CARDS_SHOWN
        self._summary = label("", "dim")
        self._line = label("", "dim")
        self.look_button = button(LibraryWords.LOOK_AGAIN, "quiet")
        self.places_button = button(LibraryWords.PLACES, "quiet")
        self.places_button.setCheckable(True)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(LibraryWords.FILTER)
        self.filter.setAccessibleName(LibraryWords.FILTER)
        self.filter.setClearButtonEnabled(True)
        self.more_button = button("")
        self.roots_card = RootsCard(palette)
        self.roots_card.hide()
        self.drop_zone = DropZone()
        self._list = QVBoxLayout()
        self._list.setSpacing(metrics.GAP)
        self._build()
        self._gather = single_shot(self, _GATHER_MS, self._show_cards)
        self._look = QTimer(self)
        self._look.setInterval(LOOK_INTERVAL_MS)
        self._look.timeout.connect(search.look_for_missing)
        self.look_button.clicked.connect(self._on_look_clicked)
        self.filter.textChanged.connect(self._on_filter_changed)
        self.more_button.clicked.connect(self._on_more_clicked)
        self.places_button.toggled.connect(self.roots_card.setVisible)
        self.roots_card.root_added.connect(search.add_root)
        self.roots_card.root_removed.connect(search.remove_root)
        library.changed.connect(self._gather.start)
        search.changed.connect(self._show_search)
        removal.weighed.connect(self._on_weighed)
        self._show_cards()
        self._show_search()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.addWidget(label(ModelWords.ON_THIS_PC, "heading"), 1)
        for widget in (self._summary, self._line, self.look_button, self.places_button):
            head.addWidget(widget)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(metrics.GAP)
        column.addWidget(self.roots_card)
        column.addWidget(self.filter)
        column.addLayout(self._list)
        column.addWidget(self.more_button)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(metrics.GAP)
        layout.addLayout(head)
        layout.addWidget(scrolling(inside, ModelWords.ON_THIS_PC), 1)
        layout.addWidget(self.drop_zone)

    @property
    def cards(self) -> list[ModelCard]:
        """The cards in their order."""
        return list(self._cards.values())

    def show_places(self, loaded_folder: str, current_folder: str) -> None:
        """Show which model is loaded and which is looked at."""
        if (loaded_folder, current_folder) != (self._loaded_folder, self._current_folder):
            self._loaded_folder, self._current_folder = loaded_folder, current_folder
            self._gather.start()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.roots_card.show_palette(palette)
        for card in self._cards.values():
            card.show_palette(palette)

    def showEvent(self, event: QShowEvent) -> None:
        """Look whether the list is still true, and go on looking while it is seen."""
        super().showEvent(event)
        self._search.freshen()
        self._look.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Look no more."""
        super().hideEvent(event)
        self._look.stop()

    def _show_cards(self) -> None:
        """Bring the cards in line with the list; many new ones come in several goes."""
        all_models = self._library.models
        num_bytes = sum(model.report.file_bytes for model in all_models if model.report is not None)
        summary = phrases.library_summary(len(all_models), num_bytes) if all_models else ""
        self._summary.setText(summary)
        self.filter.setVisible(len(all_models) > NUM_TO_FILTER)
        part = self.filter.text().strip().casefold() if len(all_models) > NUM_TO_FILTER else ""
        models = [model for model in all_models if part in model.name.casefold()]
        num_more = len(models) - self._num_shown
        self.more_button.setVisible(num_more > 0)
        self.more_button.setText(more_models(num_more))
        self.more_button.setAccessibleName(self.more_button.text())
        models = models[: self._num_shown]
        wanted = {model.folder for model in models}
        for folder in [folder for folder in self._cards if folder not in wanted]:
            remove(self._list, self._cards.pop(folder))
        cards: dict[str, ModelCard] = {}
        num_new = 0
        for model in models:
            card_there = self._cards.get(model.folder)
            if card_there is None:
                if num_new == CARDS_AT_ONCE:
                    self._gather.start()
                    continue
                num_new += 1
            card = card_there or self._new_card()
            card.show_model(
                model,
                is_loaded=self._library.is_same(model.folder, self._loaded_folder),
                is_current=self._library.is_same(model.folder, self._current_folder),
            )
            if self._list.indexOf(card) != len(cards):
                self._list.removeWidget(card)
                self._list.insertWidget(len(cards), card)
            cards[model.folder] = card
        self._cards = cards

    def _new_card(self) -> ModelCard:
        card = ModelCard(self._palette)
        card.chosen.connect(self.model_chosen)
        card.forget_wanted.connect(self._library.forget)
        card.delete_wanted.connect(self._removal.ask)
        card.can_delete = self._removal.can_remove
        return card

    def _show_search(self) -> None:
        search = self._search
        is_searching = search.is_searching
        self._line.setText(searching_line(search.num_folders))
        self._line.setVisible(is_searching)
        self._summary.setVisible(not is_searching)
        name = LibraryWords.STOP_LOOKING if is_searching else LibraryWords.LOOK_AGAIN
        if search.is_cancelling:
            name = LibraryWords.STOPPING
        self.look_button.setText(name)
        self.look_button.setAccessibleName(name)
        self.look_button.setEnabled(not search.is_cancelling)
        self.roots_card.show_roots(search.roots)

    def _on_weighed(self, removal: Removal) -> None:
        """Ask the person what should go."""
        dialog = DeleteDialog(removal, self)
        dialog.accepted.connect(
            lambda: self._removal.carry_out(
                removal, is_model_wanted=dialog.is_model_wanted, copies=dialog.copies_wanted
            )
        )
        dialog.open()

    def _on_filter_changed(self) -> None:
        self._num_shown = CARDS_SHOWN
        self._gather.start()

    def _on_more_clicked(self) -> None:
        self._num_shown += CARDS_SHOWN
        self._gather.start()

    def _on_look_clicked(self) -> None:
        if self._search.is_searching:
            self._search.cancel()
        else:
            self._search.search()
