"""The card of settings about energy: tariff, rest, and when the drive's reads are warned of."""

from collections.abc import Callable
from pathlib import PurePath

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QDoubleSpinBox, QHBoxLayout, QLineEdit, QSpinBox, QVBoxLayout, QWidget

from app.state.settings import SettingsState
from app.text.monitor_words import DriveWords
from app.text.wear_words import WearWords
from app.text.words import SettingWords
from app.timers import single_shot
from app.views.pieces import button, clear_layout, label
from app.views.sampling_fields import decimal_field, whole_field
from app.views.setting_grid import SettingGrid

TYPING_PAUSE_MS = 400


class EnergySettings(SettingGrid):
    """Shows the settings and changes them as the person types.

    ``name_of`` returns what a model's folder is called, or nothing.
    """

    def __init__(self, settings: SettingsState, name_of: Callable[[str], str]) -> None:
        super().__init__(SettingWords.ENERGY)
        self._settings = settings
        self._name_of = name_of
        self._shown_quiet: list[str] | None = None
        self._typing = single_shot(self, TYPING_PAUSE_MS, self.save)
        self.price = decimal_field(0.0, 100.0, 0.01)
        self._save_changes_of(self.price)
        self.add_row(SettingWords.PRICE, self.price)
        self.currency = QLineEdit()
        self.currency.setMaxLength(4)
        self.currency.editingFinished.connect(self.save)
        self.add_row(SettingWords.CURRENCY, self.currency)
        self.unload_after = whole_field(0, 10_000)
        self._save_changes_of(self.unload_after)
        self.add_row(SettingWords.UNLOAD_AFTER, self.unload_after, SettingWords.UNLOAD_AFTER_HINT)
        self.drive_limit = whole_field(1, 100)
        self._save_changes_of(self.drive_limit)
        self.add_row(DriveWords.LIMIT, self.drive_limit, DriveWords.LIMIT_HINT)
        self.endurance = whole_field(0, 100_000)
        self._save_changes_of(self.endurance)
        self.add_row(WearWords.ENDURANCE, self.endurance, WearWords.ENDURANCE_HINT)
        quiet = QWidget()
        self.quiet = QVBoxLayout(quiet)
        self.quiet.setContentsMargins(0, 0, 0, 0)
        self.add_row(DriveWords.QUIET_MODELS, quiet)
        settings.changed.connect(self.show_values)
        self.show_values()

    def save(self) -> None:
        """Take what the fields say."""
        self._typing.stop()
        values = self._settings.values
        self._settings.change(
            unload_after_min=self.unload_after.value(),
            max_drive_energy_ratio=self.drive_limit.value() / 100,
            drive_endurance_tb=float(self.endurance.value()),
            energy_price_per_kwh=round(self.price.value(), 4),
            currency=self.currency.text().strip() or values.currency,
        )

    def show_values(self) -> None:
        """Show the settings."""
        values = self._settings.values
        with QSignalBlocker(self.unload_after):
            self.unload_after.setValue(values.unload_after_min)
        with QSignalBlocker(self.endurance):
            self.endurance.setValue(round(values.drive_endurance_tb))
        with QSignalBlocker(self.price), QSignalBlocker(self.drive_limit):
            self.price.setValue(values.energy_price_per_kwh)
            self.drive_limit.setValue(round(values.max_drive_energy_ratio * 100))
        self.currency.setText(values.currency)
        self._show_quiet(values.quiet_drive_models)

    def _show_quiet(self, folders: list[str]) -> None:
        """Show the models of which no warning is wanted, each with the way back."""
        if folders == self._shown_quiet:
            return
        self._shown_quiet = folders
        clear_layout(self.quiet)
        for folder in folders:
            name = self._name_of(folder) or PurePath(folder).name or folder
            shown = label(name, is_wrapping=True)
            shown.setToolTip(folder)
            again = button(DriveWords.SPEAK_AGAIN, "quiet")
            again.setAccessibleName(f"{DriveWords.SPEAK_AGAIN}: {name}")
            again.clicked.connect(lambda _=False, folder=folder: self._speak_again(folder))
            row = QHBoxLayout()
            row.addWidget(shown, 1)
            row.addWidget(again)
            self.quiet.addLayout(row)
        if not folders:
            self.quiet.addWidget(label(DriveWords.QUIET_NONE, "dim"))

    def _speak_again(self, folder: str) -> None:
        kept = [each for each in self._settings.values.quiet_drive_models if each != folder]
        self._settings.change(quiet_drive_models=kept)

    def _save_changes_of(self, field: QDoubleSpinBox | QSpinBox) -> None:
        field.editingFinished.connect(self.save)
        field.valueChanged.connect(self._typing.start)
