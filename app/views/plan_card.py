"""One plan to choose: name, forecast, tiers, what it writes, what it does to the answers."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QRadioButton

from app.text import phrases
from app.text.errors import reason_text, sentence
from app.text.words import ModelWords
from app.theme.palette import Palette
from app.views.pieces import Card, label, set_look
from app.views.tier_bar import TierBar
from runtime.protocol.plan import PlacementPlan


class PlanCard(Card):
    """A plan with a radio button; one that cannot be loaded says why."""

    chosen = Signal(object)
    """The ``PlanKind``."""

    def __init__(
        self,
        plan: PlacementPlan,
        palette: Palette,
        *,
        is_recommended: bool,
        is_chosen: bool,
        can_choose: bool = True,
    ) -> None:
        super().__init__()
        self._plan = plan
        self._radio = QRadioButton(phrases.plan_title(plan))
        self._radio.setProperty("look", "strong")
        self._radio.setAutoExclusive(False)
        self._radio.setChecked(is_chosen)
        self._radio.setEnabled(plan.problem is None and can_choose)
        self._radio.clicked.connect(self._on_clicked)
        self._bar = TierBar(palette)
        head = QHBoxLayout()
        head.addWidget(self._radio)
        if is_recommended:
            head.addWidget(label(ModelWords.RECOMMENDED, "accent"))
        head.addStretch(1)
        forecast = phrases.forecast(plan.forecast) if plan.problem is None else ""
        head.addWidget(label(forecast, "strong"))
        self.body.addLayout(head)
        if plan.problem is not None:
            text = sentence(plan.problem)
            self.body.addWidget(label(text, "error", is_wrapping=True))
        else:
            text = phrases.plan_line(plan)
            self._bar.show_parts(
                [(share.tier.value, share.bytes) for share in plan.tiers],
                phrases.tiers_line(plan.tiers),
            )
            self.body.addWidget(self._bar)
            self.body.addWidget(label(text, "dim", is_wrapping=True))
            if is_recommended and plan.recommended_because:
                because = " ".join(map(reason_text, plan.recommended_because))
                self.body.addWidget(label(because, "dim", is_wrapping=True))
                text = f"{text}. {because}"
        self._radio.setAccessibleName(f"{self._radio.text()}, {forecast}, {text}")
        set_look(self, "isCurrent", is_chosen)

    def _on_clicked(self) -> None:
        self._radio.setChecked(True)
        self.chosen.emit(self._plan.kind)
