"""One model of a hub in the list."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout

from app.text.discover_words import fit_line, forecast_line, model_facts
from app.views.pieces import label, set_look
from app.views.pressable_card import PressableCard
from runtime.protocol.hub import HubFit, HubModel, HubOutlook


class HubModelCard(PressableCard):
    """A model that can be looked at."""

    chosen = Signal(str)

    def __init__(self, model: HubModel) -> None:
        super().__init__()
        self.model = model
        self._rate = label("")
        self._rate.hide()
        facts, fit = model_facts(model), fit_line(model.fit)
        head = QHBoxLayout()
        head.addWidget(label(model.model_id, "heading", is_wrapping=True), 1)
        head.addWidget(label(fit, "accent" if model.fit is HubFit.FITS else "dim"))
        self.body.addLayout(head)
        if facts:
            self.body.addWidget(label(facts, "dim", is_wrapping=True))
        self.body.addWidget(self._rate)
        self.pressed.connect(lambda: self.chosen.emit(model.model_id))
        self._name = f"{model.model_id}, {fit}, {facts}"
        self.setAccessibleName(self._name)

    def show_forecast(self, outlook: HubOutlook | None) -> None:
        """Show how fast it would answer here; None: not known."""
        line = forecast_line(outlook) if outlook is not None else ""
        self._rate.setText(line)
        self._rate.setVisible(bool(line))
        self.setAccessibleName(", ".join(filter(None, (self._name, line))))

    def show_state(self, *, is_current: bool, is_enabled: bool) -> None:
        """Show whether it is looked at, and whether it can be."""
        set_look(self, "isCurrent", is_current)
        self.setEnabled(is_enabled)
        shape = Qt.CursorShape.PointingHandCursor if is_enabled else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)
