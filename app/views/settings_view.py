"""The Settings page: a card for each area, the list of keys, and the program itself."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QSignalBlocker, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.state.engine_parts import EngineParts
from app.state.machine_figures import MachineFigures
from app.state.monitor import Monitor
from app.state.sampling import sampling_for
from app.state.session import Session
from app.state.settings import Settings, SettingsState
from app.state.updates import Updates
from app.text.view_words import DialogWords
from app.text.words import SettingWords, ShellWords
from app.theme import metrics
from app.theme.palette import Palette
from app.timers import single_shot
from app.views.about_card import AboutCard
from app.views.appearance_card import AppearanceCard
from app.views.energy_settings import EnergySettings
from app.views.engine_card import EngineCard
from app.views.hub_settings import HubSettings
from app.views.machine_card import MachineCard
from app.views.memory_settings import MemorySettings
from app.views.pieces import button, label, scrolling
from app.views.sampling_fields import SamplingFields
from app.views.setting_grid import SettingGrid
from app.views.shortcut_card import ShortcutCard
from app.views.update_card import UpdateCard

TYPING_PAUSE_MS = 400
_RECOMMENDED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What of a sampling a model's makers may recommend."""


class SettingsView(QWidget):
    """Shows ``SettingsState`` and changes it as the person types; nothing has to be saved."""

    restart_wanted = Signal()

    def __init__(
        self,
        settings: SettingsState,
        session: Session,
        files: dict[str, str],
        languages: Sequence[tuple[str, str]] = (),
        parent: QWidget | None = None,
        download_folder: str = "",
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._session = session
        self._shown_report = session.loaded_report
        self.setProperty("look", "page")
        column = QWidget()
        column.setMaximumWidth(metrics.TEXT_COLUMN_WIDTH)
        self._column = QVBoxLayout(column)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(metrics.GAP)
        self.appearance = AppearanceCard(settings, languages)
        self.appearance.restart_wanted.connect(self.restart_wanted)
        self._column.addWidget(self.appearance)
        self._build_answers()
        self.energy = EnergySettings(settings, session.name_of)
        self._column.addWidget(self.energy)
        self.hub = HubSettings(settings, download_folder)
        self._column.addWidget(self.hub)
        self._build_files(files)
        self.memory: MemorySettings | None = None
        self.machine = MachineCard(MachineFigures(session, self))
        self._column.addWidget(self.machine)
        self.keys = ShortcutCard()
        self._column.addWidget(self.keys)
        self.engine: EngineCard | None = None
        self.updates: UpdateCard | None = None
        self.about = AboutCard()
        self._column.addWidget(self.about)
        reset = button(SettingWords.RESET)
        reset.clicked.connect(settings.reset)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(reset)
        self._column.addLayout(foot)
        self._column.addStretch(1)
        page = QWidget()
        self._outside = outside = QHBoxLayout(page)
        outside.setContentsMargins(
            metrics.PAGE_MARGIN, 14, metrics.PAGE_MARGIN, metrics.PAGE_MARGIN
        )
        outside.addStretch(1)
        outside.addWidget(column, 100)
        outside.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._scroll = scrolling(page, ShellWords.SETTINGS)
        layout.addWidget(self._scroll)
        self._typing = single_shot(self, TYPING_PAUSE_MS, self._save)
        settings.changed.connect(self._show_values)
        session.changed.connect(self._on_session_changed)
        self._show_values()

    def show_keys(self) -> None:
        """Bring the list of keys into view."""
        self.keys.setFocus(Qt.FocusReason.ShortcutFocusReason)
        # Its place is known once the page has been laid out.
        self._outside.activate()
        self._scroll.ensureWidgetVisible(self.keys)

    def show_machine(self) -> None:
        """Bring the figures of this PC into view."""
        self.machine.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._outside.activate()
        # Its beginning: as a whole it may be higher than the page.
        self._scroll.verticalScrollBar().setValue(self._column.geometry().y() + self.machine.y())

    def show_updates(self) -> None:
        """Bring what is said of a newer version into view."""
        if self.updates is not None:
            self.updates.look.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self._outside.activate()
            self._scroll.ensureWidgetVisible(self.updates)

    def add_upkeep(self, engine: EngineParts | None, updates: Updates | None) -> None:
        """Have the cards about the program's upkeep, where there is any, above that about it."""
        place = self._column.indexOf(self.about)
        if updates is not None:
            self.updates = UpdateCard(updates)
            self.updates.allowed.clicked.connect(
                lambda is_on: self._settings.change(is_update_allowed=is_on)
            )
            self._column.insertWidget(place, self.updates)
        if engine is not None:
            self.engine = EngineCard(engine)
            self._column.insertWidget(place, self.engine)
        self._show_values()

    def add_memory(self, monitor: Monitor, palette: Palette) -> None:
        """Have the sliders over this PC's memory, above what is said about energy."""
        self.memory = MemorySettings(monitor, palette)
        self._column.insertWidget(self._column.indexOf(self.energy), self.memory)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        if self.memory is not None:
            self.memory.show_palette(palette)

    def show_engine(self) -> None:
        """Bring what is said of the graphics card into view."""
        if self.engine is not None:
            self.engine.fetch.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self._outside.activate()
            self._scroll.ensureWidgetVisible(self.engine)

    def _card(self, heading: str) -> SettingGrid:
        card = SettingGrid(heading)
        self._column.addWidget(card)
        return card

    def _build_answers(self) -> None:
        card = self._card(SettingWords.ANSWERS)
        self._system = QPlainTextEdit()
        self._system.setPlaceholderText(SettingWords.SYSTEM_PROMPT_HINT)
        self._system.setFixedHeight(64)
        self._system.setTabChangesFocus(True)
        self._system.textChanged.connect(self._typing_begun)
        card.add_row(SettingWords.SYSTEM_PROMPT, self._system)
        self._is_of_model = QCheckBox(SettingWords.SAMPLING_OF_MODEL)
        self._is_of_model.clicked.connect(self._save)
        card.add_row(SettingWords.SAMPLING, self._is_of_model)
        self._is_of_model.setAccessibleName(SettingWords.SAMPLING_OF_MODEL)
        self._sampling_hint = label("", "dim", is_wrapping=True)
        card.grid.addWidget(self._sampling_hint, card.grid.rowCount(), 1)
        self._sampling = SamplingFields()
        hints = {
            "temperature": SettingWords.TEMPERATURE_HINT,
            "top_p": SettingWords.TOP_P_HINT,
            "top_k": SettingWords.TOP_K_HINT,
            "min_p": SettingWords.MIN_P_HINT,
            "repetition_penalty": SettingWords.REPETITION_PENALTY_HINT,
            "max_tokens": SettingWords.MAX_TOKENS_HINT,
        }
        for name in (*_RECOMMENDED, "max_tokens"):
            field = self._sampling.fields[name]
            self._save_changes_of(field)
            card.add_row(field.accessibleName(), field, hints[name])
        self._seed = QLineEdit()
        self._seed.editingFinished.connect(self._save)
        card.add_row(DialogWords.SEED, self._seed, SettingWords.SEED_HINT)

    def _build_files(self, files: dict[str, str]) -> None:
        card = self._card(SettingWords.FILES)
        for name, path in files.items():
            row = card.grid.rowCount()
            card.grid.addWidget(label(name), row, 0)
            shown = label(path, "dim", is_wrapping=True)
            card.grid.addWidget(shown, row, 1)
            show = button(DialogWords.FOLDERS, "quiet")
            show.setAccessibleName(f"{DialogWords.FOLDERS}: {name}")
            show.clicked.connect(
                lambda _=False, path=path: QDesktopServices.openUrl(QUrl.fromLocalFile(path))
            )
            card.grid.addWidget(show, row, 2)

    def _save_changes_of(self, field: QDoubleSpinBox | QSpinBox) -> None:
        field.editingFinished.connect(self._save)
        field.valueChanged.connect(self._typing_begun)

    def _show_values(self) -> None:
        values = self._settings.values
        if self.updates is not None:
            self.updates.allowed.setChecked(values.is_update_allowed)
        self._show_sampling(values)
        if self._system.toPlainText() != values.system_prompt:
            with QSignalBlocker(self._system):
                self._system.setPlainText(values.system_prompt)

    def _show_sampling(self, values: Settings) -> None:
        """Show the sampling in force; it can be changed where it is the person's own."""
        report = self._shown_report
        sampling = sampling_for(values, report)
        is_of_model = values.is_sampling_of_model
        self._sampling.show(sampling)
        for name in _RECOMMENDED:
            self._sampling.fields[name].setEnabled(not is_of_model)
        self._is_of_model.setChecked(is_of_model)
        says_nothing = is_of_model and report is not None and report.sampling is None
        self._sampling_hint.setText(
            SettingWords.SAMPLING_NOT_SAID if says_nothing else SettingWords.SAMPLING_OF_MODEL_HINT
        )
        self._seed.setText("" if sampling.seed is None else str(sampling.seed))

    def _on_session_changed(self) -> None:
        """Show what another model's makers recommend."""
        report = self._session.loaded_report
        if report != self._shown_report:
            self._shown_report = report
            self._show_sampling(self._settings.values)

    def _typing_begun(self) -> None:
        self._typing.start()

    def _save(self) -> None:
        self._typing.stop()
        seed = self._seed.text().strip()
        values = self._settings.values
        own = self._sampling.values()
        if values.is_sampling_of_model:
            # These fields show what the model's makers recommend.
            own = {name: number for name, number in own.items() if name not in _RECOMMENDED}
        sampling = msgspec.structs.replace(
            values.sampling, **own, seed=int(seed) if seed.isdecimal() else None
        )
        self._settings.change(
            system_prompt=self._system.toPlainText().strip(),
            is_sampling_of_model=self._is_of_model.isChecked(),
            sampling=sampling,
        )
