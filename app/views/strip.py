"""The strip on top of every page: model, plan, tiers, rate beside its forecast, memory."""

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from app.graphs.series import Curve, Totals
from app.state.drive_warning import DriveWarning
from app.text import drive_phrases, energy_words, model_phrases, monitor_phrases, phrases, units
from app.text.words import ShellWords, StripWords
from app.theme import metrics
from app.theme.palette import TIERS, Palette
from app.views.pieces import button, label
from app.views.tier_bar import Dot, TierBar
from runtime.protocol.chat import GenerationStats
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Forecast

MAX_NAME_WIDTH = 260


class Strip(QFrame):
    """Says at any time what is loaded, where it lies, how fast it answered, and the warning."""

    drive_clicked = Signal()
    """The person wants to know more about the warning."""
    memory_clicked = Signal()
    """The person wants to know more about the memory that was given back."""
    cancel_clicked = Signal()
    """What is being prepared or loaded is to stop."""

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "strip")
        self.setFixedHeight(metrics.STRIP_HEIGHT)
        self._name = label(StripWords.IDLE, "heading")
        self._plan = label("", "dim")
        self._bar = TierBar(palette, 10)
        self._bar.setMinimumWidth(90)
        self._bar.setMaximumWidth(220)
        self._dots: dict[str, Dot] = {}
        self._amounts: dict[str, QLabel] = {}
        self._rate = label("", "strong")
        self._rate_unit = label("")
        self._forecast = label("", "dim")
        self._watts = label("", "strong")
        self._memory = label("", "dim")
        self._name.setMaximumWidth(MAX_NAME_WIDTH)
        self._drive_dot = Dot(palette, "drive")
        self.drive_button = button("", "warning")
        self.drive_button.clicked.connect(self.drive_clicked)
        self._memory_dot = Dot(palette, "ram")
        self.memory_button = button("", "warning")
        self.memory_button.clicked.connect(self.memory_clicked)
        self._work = label("", "dim")
        self.cancel_button = button(ShellWords.CANCEL)
        self.cancel_button.clicked.connect(self.cancel_clicked)
        self._wanted: dict[QWidget, bool] = {}
        self._build(palette)
        self.show_model(None, "", None)
        self.show_drive(None)
        self.show_work("", can_cancel=False)

    def _build(self, palette: Palette) -> None:
        layout = QHBoxLayout(self)
        layout.setSizeConstraint(QHBoxLayout.SizeConstraint.SetNoConstraint)
        layout.setContentsMargins(18, 0, 18, 0)
        layout.setSpacing(14)
        layout.addWidget(self._name)
        layout.addWidget(self._plan)
        layout.addWidget(self._bar)
        for tier in TIERS:
            pair = QHBoxLayout()
            pair.setSpacing(5)
            self._dots[tier] = Dot(palette, tier)
            self._amounts[tier] = label("", "dim")
            pair.addWidget(self._dots[tier])
            pair.addWidget(self._amounts[tier])
            layout.addLayout(pair)
        layout.addStretch(1)
        layout.addWidget(self._work)
        layout.addWidget(self.cancel_button)
        for dot, warning_button in (
            (self._memory_dot, self.memory_button),
            (self._drive_dot, self.drive_button),
        ):
            warning = QHBoxLayout()
            warning.setSpacing(5)
            warning.addWidget(dot)
            warning.addWidget(warning_button)
            layout.addLayout(warning)
        rate = QHBoxLayout()
        rate.setSpacing(4)
        rate.addWidget(self._rate)
        rate.addWidget(self._rate_unit)
        layout.addLayout(rate)
        layout.addWidget(self._forecast)
        layout.addWidget(self._watts)
        layout.addWidget(self._memory)

    def show_model(
        self, model: LoadedModel | None, status: str, plan: PlacementPlan | None
    ) -> None:
        """Show what is loaded; without a model, ``status`` says what is going on."""
        self._want(self._bar, model is not None)
        for tier in TIERS:
            self._want(self._dots[tier], False)
            self._want(self._amounts[tier], False)
        self._show_given_back(model_phrases.given_back(plan if model is not None else None))
        if model is None:
            self._name.setText(status or StripWords.IDLE)
            self._plan.setText("")
            self._memory.setText("")
            self.show_answer(None)
            return
        self._name.setText(model.name)
        self._name.setToolTip(model.folder)
        self._plan.setText(status or model_phrases.loaded_line(model))
        shares = dict.fromkeys(TIERS, 0)
        for share in model.tiers:
            shares[share.tier.value] += share.bytes
        tooltip = model_phrases.placement(model.tiers, plan)
        for each in model.tiers:
            amount = self._amounts[each.tier.value]
            if each.bytes:
                self._want(self._dots[each.tier.value], True)
                self._want(amount, True)
                amount.setText(phrases.tier_share(each))
                amount.setToolTip(tooltip)
        self._bar.show_parts(list(shares.items()), tooltip)
        self._memory.setText(model_phrases.memory_line(model))
        self._memory.setToolTip(model_phrases.memory_tooltip(model))
        self._fit()

    def _show_given_back(self, texts: tuple[str, str] | None) -> None:
        """Show that other programs have a part of the model's memory, or nothing."""
        self._want(self._memory_dot, texts is not None)
        self._want(self.memory_button, texts is not None)
        if texts is not None:
            text, sentence = texts
            self.memory_button.setText(text)
            self.memory_button.setAccessibleName(text)
            self.memory_button.setToolTip(sentence)

    def show_work(self, text: str, *, can_cancel: bool) -> None:
        """Show how far preparing or loading is, and the button to cancel it."""
        self._work.setText(text)
        self._work.setToolTip(text)
        self._want(self._work, bool(text))
        self._want(self.cancel_button, can_cancel)
        self._fit()

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show the rate of the last answer beside the forecast, and its power."""
        if stats is None:
            self._show_rate(0.0, None, "")
            return
        self._show_rate(stats.decode_tokens_per_s, stats.predicted, model_phrases.watts(stats))
        self._watts.setToolTip(energy_words.energy_parts(stats.energy.parts))

    def show_now(self, totals: Totals, forecast: Forecast | None) -> None:
        """Show the rate and the power of the last second; without tokens all stays as it is."""
        if totals.num_tokens:
            watts = units.power(totals.per_s(Curve.POWER)) if totals.joules else ""
            self._show_rate(totals.decode_tokens_per_s, forecast, watts)
            self._watts.setToolTip(monitor_phrases.power_line(totals))

    def _show_rate(self, tokens_per_s: float, forecast: Forecast | None, watts: str) -> None:
        has_rate = tokens_per_s > 0
        self._want(self._rate, has_rate)
        self._want(self._rate_unit, has_rate)
        self._want(self._forecast, has_rate and forecast is not None)
        self._want(self._watts, has_rate and bool(watts))
        if has_rate:
            number, _, unit = units.rate(tokens_per_s).partition("\N{NO-BREAK SPACE}")
            self._rate.setText(number)
            self._rate_unit.setText(unit)
            self._forecast.setText(phrases.forecast_in_strip(forecast))
            self._watts.setText(watts)
        self._fit()

    def show_drive(self, warning: DriveWarning | None) -> None:
        """Show the warning that is due, or none."""
        self._want(self._drive_dot, warning is not None)
        self._want(self.drive_button, warning is not None)
        if warning is not None:
            text = drive_phrases.drive_short(warning.use)
            self.drive_button.setText(text)
            self.drive_button.setAccessibleName(text)
            self.drive_button.setToolTip(drive_phrases.remedies_text(warning.remedies))
        self._fit()

    def _want(self, widget: QWidget, is_wanted: bool) -> None:
        self._wanted[widget] = is_wanted
        widget.setVisible(is_wanted)

    def _fit(self) -> None:
        """Let go of what matters least until the rest has room."""
        layout = self.layout()
        assert layout is not None
        optional: list[list[QWidget]] = [
            [self._memory],
            [self._forecast],
            [self._plan],
            [self._watts],
            [*self._dots.values(), *self._amounts.values()],
            [self._bar],
            [self._work],
        ]
        for widget in (each for group in optional for each in group):
            widget.setVisible(self._wanted.get(widget, True))
        for group in optional:
            layout.activate()
            if layout.minimumSize().width() <= self.width():
                return
            for widget in group:
                widget.setVisible(False)

    def minimumSizeHint(self) -> QSize:
        """Ask for no more than the window's smallest width."""
        return QSize(320, metrics.STRIP_HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the pieces to the new width."""
        super().resizeEvent(event)
        self._fit()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)
        for dot in (*self._dots.values(), self._memory_dot, self._drive_dot):
            dot.show_palette(palette)
