"""Cards that say what the last answer took: hits by tier, time, memory."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.text import model_phrases, phrases, units
from app.text.view_words import MonitorWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.pieces import Card, label
from app.views.tier_bar import TierBar
from runtime.protocol.chat import GenerationStats
from runtime.protocol.model import LoadedModel

_CAUSE_COLOURS = {"compute": "ram", "drive_wait": "drive", "other": "line"}


class PlacementCard(Card):
    """Where the weights of the loaded model lie."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(MonitorWords.PLACEMENT)
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._text = label("", "dim", is_wrapping=True)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._text)
        self.body.addStretch(1)

    def show_model(self, model: LoadedModel) -> None:
        """Show the shares of the tiers."""
        self._bar.show_parts(
            [(share.tier.value, share.bytes) for share in model.tiers],
            model_phrases.tiers_tooltip(model.tiers),
        )
        self._text.setText(model_phrases.tiers_tooltip(model.tiers))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)


class HitsCard(Card):
    """From which tier the experts of the last answer came."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(MonitorWords.LAST_ANSWER)
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._text = label(MonitorWords.NO_ANSWER, "dim", is_wrapping=True)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._text)
        self.body.addStretch(1)

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show the shares of an answer; None before the first."""
        if stats is None:
            self._bar.show_parts([], MonitorWords.NO_ANSWER)
            self._text.setText(MonitorWords.NO_ANSWER)
            return
        line = phrases.hits_line(stats.tiers)
        self._bar.show_parts([(item.tier.value, item.hits) for item in stats.tiers], line)
        self._text.setText(phrases.stats_tooltip(stats))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)


class TimeCard(Card):
    """Where the time of the last answer went."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(MonitorWords.TIME)
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._text = label(MonitorWords.NO_ANSWER, "dim", is_wrapping=True)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._text)
        self.body.addStretch(1)

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show the split of an answer; None before the first."""
        seconds = stats.seconds if stats is not None else {}
        line = model_phrases.seconds_line(seconds) or MonitorWords.NO_ANSWER
        parts = [(_CAUSE_COLOURS.get(cause, "line"), value) for cause, value in seconds.items()]
        self._bar.show_parts(parts, line)
        self._text.setText(line)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)


class MemoryCard(Card):
    """What the last answer needed of the RAM budget."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(MonitorWords.MEMORY)
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._text = label("", "dim", is_wrapping=True)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._text)
        self.body.addStretch(1)

    def show_model(self, model: LoadedModel) -> None:
        """Show budget and base."""
        self._text.setText(model_phrases.memory_tooltip(model))
        self._bar.show_parts(
            [("ram", model.budget_bytes), ("line", model.base_bytes)], self._text.text()
        )

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show the most that was held during an answer."""
        if stats is None:
            return
        line = units.size_of(stats.peak_bytes, stats.budget_bytes)
        self._bar.show_parts([("ram", stats.peak_bytes)], line, stats.budget_bytes)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)


class AnswerCards(QWidget):
    """The column of cards beside a chat."""

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._placement = PlacementCard(palette)
        self._hits = HitsCard(palette)
        self._time = TimeCard(palette)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 14, 14, 12)
        layout.setSpacing(metrics.GAP)
        for card in (self._placement, self._hits, self._time):
            layout.addWidget(card)
        layout.addStretch(1)
        self.setFixedWidth(metrics.SIDE_WIDTH + 14)

    def show_model(self, model: LoadedModel | None) -> None:
        """Show a loaded model; the cards hide while there is none."""
        self.setVisible(model is not None)
        if model is not None:
            self._placement.show_model(model)

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show what the last answer took."""
        self._hits.show_answer(stats)
        self._time.show_answer(stats)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        for card in (self._placement, self._hits, self._time):
            card.show_palette(palette)
