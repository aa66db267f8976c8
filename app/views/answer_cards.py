"""The column of cards beside a chat: the expert map, the last answer, time, the drive."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.state.monitor import Monitor
from app.text import monitor_phrases, phrases
from app.text.view_words import MonitorWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.drive_cards import DriveCard
from app.views.live_cards import CAUSE_COLOURS
from app.views.page_clock import PageClock
from app.views.pieces import Card, label
from app.views.small_map_card import SmallMapCard
from app.views.tier_bar import TierBar
from runtime.protocol.chat import GenerationStats


class HitsCard(Card):
    """From which tier the experts of the last answer came, and what it took."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(MonitorWords.LAST_ANSWER)
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._text = label(MonitorWords.NO_ANSWER, "dim", is_wrapping=True)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._text)

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
    """Where the time goes: of the tokens being written, else of the last answer."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(MonitorWords.TIME)
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._text = label(MonitorWords.NO_ANSWER, "dim", is_wrapping=True)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._text)

    def show_seconds(self, seconds: dict[str, float]) -> None:
        """Show a split; an empty one before the first answer."""
        line = monitor_phrases.time_shares(seconds) or MonitorWords.NO_ANSWER
        parts = [
            (CAUSE_COLOURS.get(cause, "line"), amount)
            for cause, amount in monitor_phrases.in_order(seconds)
        ]
        self._bar.show_parts(parts, line)
        self._text.setText(line)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)


class AnswerCards(QScrollArea):
    """The column beside a chat; measures only while it is seen."""

    map_clicked = Signal()

    def __init__(self, monitor: Monitor, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._monitor = monitor
        self._drawn_sample = -1
        self._is_map_held = False
        self._answer_seconds: dict[str, float] = {}
        self.map_card = SmallMapCard(palette)
        self.map_card.clicked.connect(self.map_clicked)
        self._hits = HitsCard(palette)
        self._time = TimeCard(palette)
        self.drive = DriveCard(monitor)
        inside = QWidget()
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(0, 14, 14, 12)
        layout.setSpacing(metrics.GAP)
        for card in (self.map_card, self._hits, self._time, self.drive):
            layout.addWidget(card)
        layout.addStretch(1)
        self.setWidgetResizable(True)
        self.setProperty("look", "scroller")
        self.setAccessibleName(MonitorWords.LAST_ANSWER)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inside)
        self.setFixedWidth(metrics.SIDE_WIDTH + 14)
        self.clock = PageClock(self, monitor.telemetry)
        self.clock.fast.connect(self._draw)
        self.clock.slow.connect(self._show_numbers)

    def hold_map(self, is_held: bool) -> None:
        """Draw no map while what draws it is being imported; the newest is drawn afterwards."""
        self._is_map_held = is_held
        self.clock.tick()

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show what the last answer took."""
        self._answer_seconds = stats.seconds if stats is not None else {}
        self._hits.show_answer(stats)
        self._time.show_seconds(self._answer_seconds)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.map_card.show_palette(palette)
        self._hits.show_palette(palette)
        self._time.show_palette(palette)

    def _draw(self) -> None:
        telemetry = self._monitor.telemetry
        is_new = telemetry.num_samples != self._drawn_sample
        if is_new and not self._is_map_held and not self.window().isMinimized():
            self._drawn_sample = telemetry.num_samples
            is_simulated = self._monitor.is_device_simulated
            self.map_card.show_map(telemetry.experts, is_simulated=is_simulated)

    def _show_numbers(self) -> None:
        telemetry = self._monitor.telemetry
        totals = telemetry.series.recent(telemetry.now_s)
        if totals.num_tokens:
            self._time.show_seconds(totals.seconds)
        else:
            self._time.show_seconds(self._answer_seconds)
