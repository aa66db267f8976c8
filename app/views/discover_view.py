"""*Discover*: search a hub, look at a model with its plans, watch downloads."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.state.discover import Discover
from app.state.downloads import Downloads, DownloadStage
from app.text.discover_words import DiscoverWords
from app.text.errors import sentence
from app.theme import metrics
from app.theme.palette import Palette
from app.timers import single_shot
from app.views.download_card import DownloadCard
from app.views.empty_state import EmptyState
from app.views.hub_model_card import HubModelCard
from app.views.hub_model_view import HubModelView
from app.views.pieces import clear_layout, label, remove, scrolling
from runtime.protocol.hub import HubModel

TYPING_PAUSE_MS = 500
"""A hub is asked when no key was pressed for so long."""


class DiscoverView(QWidget):
    """Shows ``Discover`` and ``Downloads``, and passes intents to both."""

    folder_chosen = Signal(str)
    """A model that is here is to be looked at."""

    def __init__(self, discover: Discover, downloads: Downloads, palette: Palette) -> None:
        super().__init__()
        self._discover = discover
        self._downloads = downloads
        self._shown: tuple[HubModel, ...] | None = None
        """The models that have a card."""
        self.search = QLineEdit()
        self.search.setPlaceholderText(DiscoverWords.SEARCH)
        self.search.setAccessibleName(DiscoverWords.SEARCH)
        self.search.setClearButtonEnabled(True)
        self._heading = label("", "heading", is_wrapping=True)
        self._error = label("", "error", is_wrapping=True)
        self._list = QVBoxLayout()
        self._list.setSpacing(metrics.GAP)
        self.model_cards: list[HubModelCard] = []
        self._downloads_heading = label(DiscoverWords.DOWNLOADS, "heading")
        self._queue = QVBoxLayout()
        self._queue.setSpacing(metrics.GAP)
        self.download_cards: dict[str, DownloadCard] = {}
        self.allow = EmptyState()
        self.allow.show_state(
            DiscoverWords.ALLOW_TITLE, DiscoverWords.ALLOW_TEXT, DiscoverWords.ALLOW
        )
        self._empty = EmptyState()
        self._empty.show_state(DiscoverWords.CHOOSE_TITLE, DiscoverWords.CHOOSE_TEXT)
        self.model_view = HubModelView(palette)
        self._typing = single_shot(self, TYPING_PAUSE_MS, self._search)
        self._build()
        self._connect()
        self._show()
        self._show_downloads()

    def _build(self) -> None:
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(metrics.GAP)
        column.addWidget(self._downloads_heading)
        column.addLayout(self._queue)
        column.addWidget(self._heading)
        column.addWidget(self._error)
        column.addLayout(self._list)
        column.addStretch(1)
        area = scrolling(inside, DiscoverWords.DISCOVER)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        left = QVBoxLayout()
        left.setSpacing(metrics.GAP)
        left.addWidget(self.search)
        left.addWidget(area, 1)
        right = QVBoxLayout()
        for widget in (self.allow, self._empty, self.model_view):
            right.addWidget(widget)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(metrics.GAP)
        layout.addLayout(left, 5)
        layout.addLayout(right, 6)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._typing.start)
        self.search.returnPressed.connect(self._search)
        self.allow.acted.connect(self._discover.allow)
        self._discover.changed.connect(self._show)
        self._downloads.changed.connect(self._show_downloads)
        view = self.model_view
        view.download_wanted.connect(self._on_download_wanted)
        view.pause_wanted.connect(self._downloads.pause)
        view.resume_wanted.connect(self._downloads.resume)
        view.folder_chosen.connect(self.folder_chosen)
        view.variants.chosen.connect(self._discover.choose_variant)

    def showEvent(self, event: QShowEvent) -> None:
        """Forecast the list that is seen first, where that was allowed before."""
        super().showEvent(event)
        if self._discover.is_curated and not event.spontaneous():
            self._discover.forecast()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.model_view.show_palette(palette)

    def _search(self) -> None:
        self._typing.stop()
        if self.search.text().strip() != self._discover.query or self._discover.error is not None:
            self._discover.search(self.search.text())

    def _show(self) -> None:
        discover = self._discover
        is_allowed = discover.is_allowed
        choice = discover.choice
        self.search.setEnabled(is_allowed)
        self.allow.setVisible(not is_allowed)
        self._empty.setVisible(is_allowed and choice is None)
        self.model_view.setVisible(is_allowed and choice is not None)
        self._show_choice()
        heading = DiscoverWords.STARTERS if discover.is_curated else DiscoverWords.FOUND
        if not discover.models:
            heading = DiscoverWords.NOTHING
        if discover.is_searching:
            heading = DiscoverWords.SEARCHING
        self._heading.setText(heading)
        error = discover.error
        self._error.setText(sentence(error) if error is not None else "")
        self._error.setVisible(error is not None)
        self._show_models()

    def _show_models(self) -> None:
        discover = self._discover
        if self._shown is not discover.models:
            self._shown = discover.models
            clear_layout(self._list)
            self.model_cards = [HubModelCard(model) for model in discover.models]
            for card in self.model_cards:
                card.chosen.connect(discover.choose)
                self._list.addWidget(card)
        current = discover.choice.model_id if discover.choice is not None else ""
        for card in self.model_cards:
            card.show_state(
                is_current=card.model.model_id == current, is_enabled=discover.is_allowed
            )
            card.show_forecast(discover.forecasts.of(card.model.model_id))

    def _show_downloads(self) -> None:
        items = {item.key: item for item in self._downloads.items}
        for key in [each for each in self.download_cards if each not in items]:
            remove(self._queue, self.download_cards.pop(key))
        for key, item in items.items():
            if key not in self.download_cards:
                card = DownloadCard()
                card.pause_wanted.connect(self._downloads.pause)
                card.resume_wanted.connect(self._downloads.resume)
                card.remove_wanted.connect(self._downloads.remove)
                card.folder_chosen.connect(self.folder_chosen)
                self._queue.addWidget(card)
                self.download_cards[key] = card
            self.download_cards[key].show_item(item)
        self._downloads_heading.setVisible(bool(items))
        self._show_choice()

    def _show_choice(self) -> None:
        choice = self._discover.choice
        if choice is not None:
            variant = self._discover.shown_variant
            item = self._downloads.of(choice.model_id, variant)
            done = frozenset(
                each.variant
                for each in self._downloads.items
                if each.model_id == choice.model_id and each.stage is DownloadStage.DONE
            )
            self.model_view.show_choice(choice, item, variant, done)

    def _on_download_wanted(self) -> None:
        choice = self._discover.choice
        if choice is not None and choice.card is not None:
            self._downloads.add(choice.card, self._discover.folder)
