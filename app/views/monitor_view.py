"""The Monitor page: which experts are hot, where they lie, what moves and what it costs."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFileDialog,
    QHBoxLayout,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.graphs.series import WINDOW_S, Curve, Totals
from app.state.curve_table import curve_table
from app.state.monitor import Monitor
from app.state.stages import Stage
from app.text import monitor_phrases
from app.text.memory_words import SaveWords
from app.text.monitor_words import LiveWords
from app.text.phrases import tier_name
from app.text.view_words import MonitorWords
from app.text.wear_words import wear_lines
from app.text.words import ShellWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.drive_cards import DriveWarningCard
from app.views.empty_state import EmptyState
from app.views.live_budget_card import LiveBudgetCard
from app.views.live_cards import EnergyCard, HitCard, NotesCard, ThroughputCard, TokenCard
from app.views.map_card import MapCard
from app.views.memory_card import MemoryCard
from app.views.monitor_menu import MonitorMenu
from app.views.page_clock import PageClock
from app.views.pieces import button, label, scrolling
from app.views.reading_card import ReadingCard
from app.views.saving import picture_of, save
from app.views.strain_card import StrainCard
from runtime.protocol.chat import GenerationStats
from runtime.protocol.telemetry import RateLimits
from runtime.protocol.values import Tier

MIN_WIDTH_OF_TWO_COLUMNS = 980
NUMBERS_BACK_S = 1.0
COSTS_BACK_S = 10.0
MAP_HEIGHT_IN_ONE_COLUMN = 280
PLOT_HEIGHT_IN_ONE_COLUMN = 140


class MonitorView(QWidget):
    """Draws ``Monitor`` ten times a second while it is seen; its numbers change twice a second."""

    remedy_wanted = Signal(object)

    def __init__(self, monitor: Monitor, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._monitor = monitor
        self._palette = palette
        self._drawn_sample = -1
        self._drawn_point = -1
        self.setProperty("look", "page")
        self.warning = DriveWarningCard(monitor, palette)
        self.warning.remedy_wanted.connect(self.remedy_wanted)
        self.map_card = MapCard(palette)
        self.hits = [
            HitCard(palette, Tier.VRAM, LiveWords.FROM_VRAM),
            HitCard(palette, Tier.RAM, LiveWords.FROM_RAM),
            HitCard(palette, Tier.DRIVE, LiveWords.FROM_DRIVE),
        ]
        self.throughput = ThroughputCard(palette)
        self.energy = EnergyCard(palette)
        self.token = TokenCard(palette)
        self.budgets = LiveBudgetCard(monitor, palette)
        self.memory = MemoryCard(palette)
        self.reading = ReadingCard(palette)
        self.strain = StrainCard()
        self.notes = NotesCard()
        self.menu = MonitorMenu(palette)
        self.menu.window_chosen.connect(self._on_window_chosen)
        self.menu.table_wanted.connect(self._on_table_wanted)
        self.menu.picture_wanted.connect(self._on_picture_wanted)
        self._window_s = WINDOW_S
        self._told = label("", "dim", is_wrapping=True)
        self._told.hide()
        self._empty = EmptyState()
        self._empty.show_state(MonitorWords.EMPTY_TITLE, MonitorWords.EMPTY_TEXT)
        self.pause_button = button(LiveWords.PAUSE, "quiet")
        self.pause_button.clicked.connect(self._on_pause_clicked)
        self._paused = label(LiveWords.PAUSED, "dim")
        self._paused.hide()
        self._build()
        self.clock = PageClock(self, monitor.telemetry)
        self.clock.fast.connect(self._draw)
        self.clock.slow.connect(self._show_numbers)
        monitor.session.changed.connect(self._show_model)
        monitor.telemetry.noted.connect(self._show_notes)
        self._show_model()
        self._show_notes()

    def _build(self) -> None:
        hits = QHBoxLayout()
        hits.setSpacing(metrics.GAP)
        for card in self.hits:
            hits.addWidget(card, 1)
        left = QVBoxLayout()
        left.setSpacing(metrics.GAP)
        left.addWidget(self.map_card, 1)
        left.addWidget(self.budgets)
        left.addWidget(self.memory)
        self.map_card.add_action(self.pause_button)
        self.map_card.add_action(self.menu)
        right = QVBoxLayout()
        right.setSpacing(metrics.GAP)
        right.addLayout(hits)
        right.addWidget(self.throughput, 1)
        right.addWidget(self.energy, 1)
        right.addWidget(self.token)
        right.addWidget(self.reading)
        right.addWidget(self.strain)
        right.addWidget(self.notes)
        columns = self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        columns.setSpacing(metrics.GAP)
        columns.addLayout(left, 60)
        columns.addLayout(right, 40)
        inside = self._inside = QWidget()
        page = QVBoxLayout(inside)
        page.setContentsMargins(metrics.PAGE_MARGIN, 14, metrics.PAGE_MARGIN, metrics.PAGE_MARGIN)
        page.setSpacing(metrics.GAP)
        page.addWidget(self.warning)
        page.addWidget(self._paused)
        page.addWidget(self._told)
        page.addLayout(columns, 1)
        self._scroll = scrolling(inside, ShellWords.MONITOR)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self._scroll)

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show what the last answer took, until something newer is measured."""
        if stats is None:
            return
        self.token.show_time(stats.seconds, stats.decode_tokens_per_s)
        self._show_hits(
            Totals(
                hits={count.tier: count.hits for count in stats.tiers},
                hit_bytes={count.tier: count.bytes for count in stats.tiers},
            )
        )

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.warning.show_palette(palette)
        self.map_card.show_palette(palette)
        self.throughput.show_palette(palette)
        self.energy.show_palette(palette)
        self.token.show_palette(palette)
        self.budgets.show_palette(palette)
        self.memory.show_palette(palette)
        self.reading.show_palette(palette)
        self.menu.show_palette(palette)
        for card in self.hits:
            card.show_palette(palette)

    def _show_model(self) -> None:
        is_loaded = self._monitor.session.loaded is not None
        self._stack.setCurrentWidget(self._scroll if is_loaded else self._empty)

    def _show_notes(self) -> None:
        self.notes.show_notes(self._monitor.telemetry.notes)

    def _draw(self) -> None:
        """Draw the map with each sample, and the curves with each point that is new in them."""
        telemetry = self._monitor.telemetry
        if telemetry.num_samples == self._drawn_sample or self.window().isMinimized():
            return
        now_s = telemetry.now_s
        bucket_s = telemetry.series_of(self._window_s).bucket_s
        point = int(now_s // bucket_s)
        self._drawn_sample = telemetry.num_samples
        self.map_card.show_map(
            telemetry.experts,
            is_simulated=self._monitor.is_device_simulated,
            expert_bytes=self._monitor.expert_bytes,
        )
        if point == self._drawn_point:
            return
        self._drawn_point = point
        self._draw_curves()

    def _draw_curves(self) -> None:
        telemetry = self._monitor.telemetry
        series, now_s = telemetry.series_of(self._window_s), telemetry.now_s
        self.throughput.show_curves(series, now_s, has_device=self._has_device())
        self.energy.show_curves(series, now_s)

    def _show_numbers(self) -> None:
        telemetry = self._monitor.telemetry
        now_s = telemetry.now_s
        totals = telemetry.series.recent(now_s, NUMBERS_BACK_S)
        latest = telemetry.latest
        self._show_hits(totals)
        self.throughput.show_numbers(
            totals,
            latest.limits if latest is not None else RateLimits(),
            has_device=self._has_device(),
        )
        self.energy.show_numbers(totals, self._cost_line())
        self.energy.show_sums(self._sums_line())
        self.token.show_time(totals.seconds, totals.decode_tokens_per_s)
        self.map_card.show_numbers()
        self._show_memory()
        if latest is not None:
            self.strain.show_strain(latest.strain, has_device=self._has_device())
        hints = telemetry.series.recent(now_s, COSTS_BACK_S).hints
        drive_bytes = telemetry.series_of(self._window_s).amount(Curve.DRIVE, now_s)
        self.reading.show_reading(hints, drive_bytes, self._window_s)

    def _show_hits(self, totals: Totals) -> None:
        self.hits[0].setVisible(self._has_device())
        for card, tier in zip(self.hits, Tier, strict=True):
            is_simulated_tier = tier is Tier.VRAM and self._monitor.is_device_simulated
            card.show_totals(totals, is_simulated=is_simulated_tier)

    def _show_memory(self) -> None:
        ram, vram = self._monitor.memory_maps()
        if ram is not None:
            is_simulated = self._monitor.is_device_simulated
            place = monitor_phrases.tier_place(Tier.VRAM, is_simulated=is_simulated)
            self.memory.show_memory(
                (tier_name(Tier.RAM), ram), (place, vram) if vram is not None else None
            )

    def _cost_line(self) -> str:
        """Return energy and cost of a thousand tokens, over the last seconds of writing."""
        use = self._monitor.drive.use
        if use is None or use.total_j <= 0:
            return ""
        cost = self._monitor.cost_per_1000_tokens(use)
        currency = self._monitor.tariff[1]
        return monitor_phrases.energy_cost(use.wh_per_1000_tokens, cost, currency)

    def _sums_line(self) -> str:
        """Return what this session and this month took, and what they did to the drive."""
        monitor, book = self._monitor, self._monitor.energy
        endurance_tb = monitor.settings.values.drive_endurance_tb
        lines = [
            monitor_phrases.energy_sums(book.session, book.month, *monitor.tariff),
            wear_lines(book.session, book.month, endurance_tb),
        ]
        if monitor.session.stage is Stage.ANSWERING and any(lines):
            lines.append(LiveWords.NOT_ADDED_YET)
        return "\n".join(line for line in lines if line)

    def _has_device(self) -> bool:
        plan = self._monitor.session.loaded_plan
        return plan is not None and plan.vram_bytes > 0

    def _on_pause_clicked(self) -> None:
        is_paused = not self.clock.is_paused
        self.clock.pause(is_paused)
        name = LiveWords.GO_ON if is_paused else LiveWords.PAUSE
        self.pause_button.setText(name)
        self.pause_button.setAccessibleName(name)
        self._paused.setVisible(is_paused)

    def _on_window_chosen(self, window_s: float) -> None:
        self._window_s = window_s
        self._draw_curves()
        self._show_numbers()

    def _on_table_wanted(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, SaveWords.AS_TABLE, "larder-monitor.csv", SaveWords.TABLES
        )
        telemetry = self._monitor.telemetry
        if path:
            text = curve_table(telemetry.series_of(self._window_s), telemetry.now_s)
            save(path, text.encode(), self._told)

    def _on_picture_wanted(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, SaveWords.AS_PICTURE, "larder-monitor.png", SaveWords.PICTURES
        )
        if path:
            save(path, picture_of(self._inside, self._palette.background), self._told)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stand in one or two columns."""
        super().resizeEvent(event)
        is_wide = self.width() >= MIN_WIDTH_OF_TWO_COLUMNS
        side_by_side = QBoxLayout.Direction.LeftToRight
        direction = side_by_side if is_wide else QBoxLayout.Direction.TopToBottom
        if self._columns.direction() is not direction:
            self._columns.setDirection(direction)
            self.map_card.map.setMinimumHeight(0 if is_wide else MAP_HEIGHT_IN_ONE_COLUMN)
            for card in (self.throughput, self.energy):
                card.plot.setMinimumHeight(0 if is_wide else PLOT_HEIGHT_IN_ONE_COLUMN)
