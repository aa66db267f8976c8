"""The strip on top of every page: model, plan, tiers, rate beside its forecast, memory."""

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from app.text import model_phrases, phrases, units
from app.text.words import StripWords
from app.theme import metrics
from app.theme.palette import TIERS, Palette
from app.views.pieces import label
from app.views.tier_bar import Dot, TierBar
from runtime.protocol.chat import GenerationStats
from runtime.protocol.model import LoadedModel


class Strip(QFrame):
    """Says at any time what is loaded, where it lies and how fast it answered."""

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "strip")
        self.setFixedHeight(metrics.STRIP_HEIGHT)
        self._name = label(StripWords.IDLE, "heading")
        self._plan = label("", "dim")
        self._bar = TierBar(palette, 10)
        self._bar.setFixedWidth(220)
        self._dots: dict[str, Dot] = {}
        self._amounts: dict[str, QLabel] = {}
        self._rate = label("", "strong")
        self._rate_unit = label("")
        self._forecast = label("", "dim")
        self._memory = label("", "dim")
        layout = QHBoxLayout(self)
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
        rate = QHBoxLayout()
        rate.setSpacing(4)
        rate.addWidget(self._rate)
        rate.addWidget(self._rate_unit)
        layout.addLayout(rate)
        layout.addWidget(self._forecast)
        layout.addWidget(self._memory)
        self.show_model(None, "")

    def show_model(self, model: LoadedModel | None, status: str) -> None:
        """Show what is loaded; without a model, ``status`` says what is going on."""
        is_loaded = model is not None
        self._bar.setVisible(is_loaded)
        for tier in TIERS:
            self._dots[tier].setVisible(False)
            self._amounts[tier].setVisible(False)
        if model is None:
            self._name.setText(status or StripWords.IDLE)
            self._plan.setText("")
            self._memory.setText("")
            self.show_answer(None)
            return
        self._name.setText(model.name)
        self._plan.setText(status or model_phrases.loaded_line(model))
        shares = dict.fromkeys(TIERS, 0)
        for share in model.tiers:
            shares[share.tier.value] += share.bytes
        for tier, amount in shares.items():
            if amount:
                self._dots[tier].setVisible(True)
                self._amounts[tier].setVisible(True)
                self._amounts[tier].setText(model_phrases.tier_amount(tier, amount))
        self._bar.show_parts(list(shares.items()), model_phrases.tiers_tooltip(model.tiers))
        self._memory.setText(model_phrases.memory_line(model))
        self._memory.setToolTip(model_phrases.memory_tooltip(model))

    def show_answer(self, stats: GenerationStats | None) -> None:
        """Show the rate of the last answer beside the forecast."""
        has_rate = stats is not None and stats.decode_tokens_per_s > 0
        self._rate.setVisible(has_rate)
        self._rate_unit.setVisible(has_rate)
        self._forecast.setVisible(has_rate and stats is not None and stats.predicted is not None)
        if stats is None or not has_rate:
            return
        number, _, unit = units.rate(stats.decode_tokens_per_s).partition("\N{NO-BREAK SPACE}")
        self._rate.setText(number)
        self._rate_unit.setText(unit)
        self._forecast.setText(phrases.forecast_in_strip(stats.predicted))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)
        for dot in self._dots.values():
            dot.show_palette(palette)
