"""The first card of the settings: colours, language, size, what happens at the start."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QWidget

from app.state.settings import Settings, SettingsState, ThemeChoice
from app.text.appearance_words import AppearanceWords, zoom_name
from app.text.words import SettingWords
from app.views.pieces import button, label
from app.views.setting_grid import SettingGrid

ZOOMS = (100, 110, 125, 150, 175, 200)


class AppearanceCard(SettingGrid):
    """Shows and changes how the window looks.

    Language and size are in force after a restart, which a button offers as soon as they differ
    from those in force.
    """

    restart_wanted = Signal()

    def __init__(self, settings: SettingsState, languages: Sequence[tuple[str, str]]) -> None:
        super().__init__(SettingWords.APPEARANCE)
        self._settings = settings
        self._in_force = _needing_restart(settings.values)
        self.theme = QComboBox()
        for name, theme in (
            (SettingWords.THEME_SYSTEM, ThemeChoice.SYSTEM),
            (SettingWords.THEME_LIGHT, ThemeChoice.LIGHT),
            (SettingWords.THEME_DARK, ThemeChoice.DARK),
            (AppearanceWords.THEME_CONTRAST, ThemeChoice.CONTRAST),
        ):
            self.theme.addItem(name, theme)
        self.language = QComboBox()
        self.language.addItem(SettingWords.THEME_SYSTEM, "")
        for code, name in languages:
            self.language.addItem(name, code)
        self.zoom = QComboBox()
        for percent in ZOOMS:
            self.zoom.addItem(zoom_name(percent), percent)
        self.load_last = QCheckBox(SettingWords.LOAD_LAST)
        for box in (self.theme, self.language, self.zoom):
            box.activated.connect(self._save)
        self.load_last.clicked.connect(self._save)
        self.add_row(SettingWords.THEME, self.theme)
        self.add_row(AppearanceWords.LANGUAGE, self.language)
        self.add_row(AppearanceWords.SIZE, self.zoom)
        self._add_restart()
        self.add_row(SettingWords.START, self.load_last)
        settings.changed.connect(self.show_values)
        self.show_values()

    def _add_restart(self) -> None:
        self.restart_button = button(AppearanceWords.RESTART)
        self.restart_button.clicked.connect(self.restart_wanted)
        self._restart = QWidget()
        row = QHBoxLayout(self._restart)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(label(AppearanceWords.AFTER_RESTART, "dim", is_wrapping=True), 1)
        row.addWidget(self.restart_button)
        self.grid.addWidget(self._restart, self.grid.rowCount(), 1)

    def show_values(self) -> None:
        """Show the settings."""
        values = self._settings.values
        self.theme.setCurrentIndex(self.theme.findData(values.theme))
        # What a file names and is not there any more is the system's choice.
        self.language.setCurrentIndex(max(0, self.language.findData(values.language)))
        self._show_zoom(values.zoom_percent)
        self.load_last.setChecked(values.load_last_model)
        self._restart.setVisible(_needing_restart(values) != self._in_force)

    def _show_zoom(self, percent: int) -> None:
        if self.zoom.findData(percent) < 0:
            self.zoom.addItem(zoom_name(percent), percent)
        self.zoom.setCurrentIndex(self.zoom.findData(percent))

    def _save(self) -> None:
        self._settings.change(
            theme=ThemeChoice(self.theme.currentData()),
            language=str(self.language.currentData()),
            zoom_percent=int(self.zoom.currentData()),
            load_last_model=self.load_last.isChecked(),
        )


def _needing_restart(values: Settings) -> tuple[str, int]:
    return values.language, values.zoom_percent
