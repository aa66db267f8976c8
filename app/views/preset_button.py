"""The button that says which preset a chat has, and its menu."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.text.preset_words import PresetWords, always_with
from app.views.pieces import ToolButton, menu_text

MAX_NAME_CHARACTERS = 24


class PresetButton(ToolButton):
    """Shows the preset in force and offers the others."""

    chosen = Signal(str)
    """The name for this chat; empty takes its preset away."""
    always_chosen = Signal(bool)
    """Whether the loaded model is to have the chat's preset by itself."""
    edit_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setProperty("look", "menu")
        self.setToolTip(PresetWords.EXPLAINED)
        self._menu = QMenu(self)
        self.setMenu(self._menu)
        self._shown: tuple[object, ...] | None = None

    def show_presets(
        self, names: Sequence[str], in_force: str, *, model: str, of_model: str
    ) -> None:
        """Show the presets there are, the one in force, and the one that a loaded model has."""
        shown = (tuple(names), in_force, model, of_model)
        if shown == self._shown:
            return
        self._shown = shown
        short = in_force[:MAX_NAME_CHARACTERS] + "…" * (len(in_force) > MAX_NAME_CHARACTERS)
        self.setText(f"{menu_text(short) or PresetWords.PRESET} ▾")
        self.setAccessibleName(f"{PresetWords.PRESET}: {in_force or PresetWords.NONE}")
        self._menu.clear()
        self._add("", PresetWords.NONE, is_checked=not in_force)
        for name in names:
            self._add(name, name, is_checked=name == in_force)
        self._menu.addSeparator()
        if model and in_force:
            always = self._menu.addAction(menu_text(always_with(model)))
            always.setCheckable(True)
            always.setChecked(of_model == in_force)
            always.triggered.connect(self.always_chosen)
        self._menu.addAction(PresetWords.EDIT).triggered.connect(self.edit_wanted)

    def actions_shown(self) -> list[QAction]:
        """Return what the menu offers."""
        return [each for each in self._menu.actions() if not each.isSeparator()]

    def _add(self, name: str, text: str, *, is_checked: bool) -> None:
        action = self._menu.addAction(menu_text(text))
        action.setCheckable(True)
        action.setChecked(is_checked)
        action.triggered.connect(lambda: self.chosen.emit(name))
