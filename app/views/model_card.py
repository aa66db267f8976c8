"""One known model in the list: name, state, size, where it would lie."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu

from app.state.library import KnownModel
from app.text import phrases, units
from app.text.errors import sentence
from app.text.words import ModelWords
from app.theme.palette import Palette
from app.views.pieces import Card, label, set_look
from app.views.tier_bar import TierBar


class ModelCard(Card):
    """A model that can be looked at by click or Enter."""

    chosen = Signal(str)
    forget_wanted = Signal(str)

    def __init__(
        self, model: KnownModel, palette: Palette, *, is_loaded: bool, is_current: bool
    ) -> None:
        super().__init__()
        self._model = model
        self._bar = TierBar(palette, 6)
        state = _state_of(model, is_loaded)
        head = QHBoxLayout()
        head.addWidget(label(model.name, "heading"), 1)
        head.addWidget(label(state, "dim"))
        self.body.addLayout(head)
        self.body.addWidget(label(_line_of(model), "dim", is_wrapping=True))
        self._bar.show_parts(
            [(share.tier.value, share.bytes) for share in model.tiers],
            phrases.tiers_line(list(model.tiers)),
        )
        self.body.addWidget(self._bar)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(f"{model.name}, {state}")
        self.setToolTip(model.folder)
        set_look(self, "isCurrent", is_current)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose on a click."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(
            event.position().toPoint()
        ):
            self.chosen.emit(self._model.folder)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose on Enter or space, forget on Delete."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(self._model.folder)
        elif event.key() == Qt.Key.Key_Delete and not self._model.is_demo:
            self.forget_wanted.emit(self._model.folder)
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer to take the folder off the list."""
        if self._model.is_demo:
            return
        menu = QMenu(self)
        menu.addAction(ModelWords.FORGET).triggered.connect(
            lambda: self.forget_wanted.emit(self._model.folder)
        )
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())


def _state_of(model: KnownModel, is_loaded: bool) -> str:
    if model.is_missing:
        return ModelWords.MISSING
    if model.report is None:
        return ModelWords.NEVER_LOOKED
    if not model.report.is_runnable:
        return ModelWords.NOT_COMPLETE
    parts = [ModelWords.LOADED if is_loaded else ModelWords.READY]
    if model.measured_tokens_per_s > 0:
        parts.append(phrases.measured(model.measured_tokens_per_s))
    elif model.forecast_high > 0:
        parts.append(units.rate_band(model.forecast_low, model.forecast_high))
    return phrases.DOT.join(parts)


def _line_of(model: KnownModel) -> str:
    if model.report is None:
        return model.folder
    if model.report.problems:
        return sentence(model.report.problems[0])
    return phrases.model_line(model.report)
