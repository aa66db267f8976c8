"""The Monitor page: where the weights lie and what the last answer took."""

from PySide6.QtWidgets import QGridLayout, QStackedLayout, QVBoxLayout, QWidget

from app.state.session import Session
from app.text.view_words import MonitorWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.answer_cards import HitsCard, MemoryCard, PlacementCard, TimeCard
from app.views.empty_state import EmptyState
from runtime.protocol.chat import GenerationStats


class MonitorView(QWidget):
    """Cards about the loaded model and its last answer."""

    def __init__(self, session: Session, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setProperty("look", "page")
        self._placement = PlacementCard(palette)
        self._hits = HitsCard(palette)
        self._time = TimeCard(palette)
        self._memory = MemoryCard(palette)
        self._empty = EmptyState()
        self._empty.show_state(MonitorWords.EMPTY_TITLE, MonitorWords.EMPTY_TEXT)
        cards = QWidget()
        grid = QGridLayout()
        grid.setSpacing(metrics.GAP)
        for index, card in enumerate((self._placement, self._memory, self._hits, self._time)):
            grid.addWidget(card, index // 2, index % 2)
        column = QVBoxLayout(cards)
        column.setContentsMargins(metrics.PAGE_MARGIN, 14, metrics.PAGE_MARGIN, metrics.PAGE_MARGIN)
        column.addLayout(grid)
        column.addStretch(1)
        self._cards = cards
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(cards)
        session.changed.connect(self._show_model)
        self._show_model()

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show what the last answer took."""
        self._hits.show_answer(stats)
        self._time.show_answer(stats)
        self._memory.show_answer(stats)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        for card in (self._placement, self._hits, self._time, self._memory):
            card.show_palette(palette)

    def _show_model(self) -> None:
        model = self._session.loaded
        self._stack.setCurrentWidget(self._cards if model is not None else self._empty)
        if model is not None:
            self._placement.show_model(model)
            self._memory.show_model(model)
