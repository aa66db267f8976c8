"""One known model in the list: name, state, size, where it would lie."""

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, QUrl, Signal
from PySide6.QtGui import QContextMenuEvent, QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu

from app.state.known_model import KnownModel
from app.text import phrases, units
from app.text.errors import sentence
from app.text.library_words import DeleteWords, LibraryWords, paths_told, prepared_line
from app.text.words import ModelWords
from app.theme.palette import Palette
from app.views.pieces import button, label, set_look
from app.views.pressable_card import PressableCard
from app.views.tier_bar import TierBar


class ModelCard(PressableCard):
    """A model that can be looked at."""

    chosen = Signal(str)
    forget_wanted = Signal(str)
    delete_wanted = Signal(str)

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._shown: tuple[KnownModel, bool, bool] | None = None
        self.can_delete: Callable[[str], bool] = lambda _: False
        """Whether a model may be deleted now; asked when the menu is opened."""
        self._name = label("", "heading")
        self._state = label("", "dim")
        self._line = label("", "dim", is_wrapping=True)
        self._prepared = label("", "dim", is_wrapping=True)
        self._bar = TierBar(palette, 6)
        self.more_button = button("\u22ef", "quiet")
        self.more_button.setAccessibleName(LibraryWords.MORE)
        self.more_button.setToolTip(LibraryWords.MORE)
        self.more_button.clicked.connect(
            lambda: self._show_menu(self.more_button.mapToGlobal(self.more_button.rect().center()))
        )
        head = QHBoxLayout()
        head.addWidget(self._name, 1)
        head.addWidget(self._state)
        head.addWidget(self.more_button)
        self.body.addLayout(head)
        for widget in (self._line, self._prepared, self._bar):
            self.body.addWidget(widget)
        self.pressed.connect(lambda: self.chosen.emit(self.model.folder))

    @property
    def model(self) -> KnownModel:
        """The model that is shown."""
        assert self._shown is not None, "a card is shown with a model"
        return self._shown[0]

    def show_model(self, model: KnownModel, *, is_loaded: bool, is_current: bool) -> None:
        """Show a model; whether it is the loaded one, and the one that is looked at."""
        shown = (model, is_loaded, is_current)
        if shown == self._shown:
            return
        self._shown = shown
        state = _state_of(model, is_loaded)
        self._name.setText(model.name)
        self._state.setText(state)
        self._line.setText(_line_of(model))
        prepared = prepared_line(model.report.prepared) if model.report is not None else ""
        self._prepared.setText(prepared)
        self._prepared.setVisible(bool(prepared))
        self._bar.show_parts(
            [(share.tier.value, share.bytes) for share in model.tiers],
            phrases.tiers_line(list(model.tiers)),
        )
        self._bar.setVisible(bool(model.tiers))
        self.setAccessibleName(f"{model.name}, {state}")
        self.setToolTip(paths_told(model.folder, model.links))
        set_look(self, "isCurrent", is_current)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose as a press does, forget on Delete."""
        if event.key() == Qt.Key.Key_Delete and not self.model.is_demo:
            self.forget_wanted.emit(self.model.folder)
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer what else can be done with it."""
        self._show_menu(event.globalPos())

    def menu(self) -> QMenu:
        """Return what can be done beside choosing it."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        folder = self.model.folder
        menu.addAction(LibraryWords.OPEN_FOLDER).triggered.connect(
            lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(self.model.place))
        )
        if not self.model.is_demo:
            menu.addAction(LibraryWords.FORGET).triggered.connect(
                lambda: self.forget_wanted.emit(folder)
            )
            can_delete = self.can_delete(folder)
            delete = menu.addAction(DeleteWords.DELETE if can_delete else DeleteWords.UNLOAD_FIRST)
            delete.setEnabled(can_delete)
            delete.triggered.connect(lambda: self.delete_wanted.emit(folder))
        return menu

    def _show_menu(self, place: QPoint) -> None:
        self.menu().popup(place)


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
    return phrases.DOT.join((model.report.model_type, phrases.model_line(model.report)))
