"""The dialog in which presets are written, taken in and saved as files."""

from pathlib import Path

import msgspec
from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.state.json_file import export_whole
from app.state.presets import (
    MAX_PRESET_BYTES,
    PresetFileError,
    PresetState,
    preset_file,
    presets_of,
)
from app.state.settings_file import Preset
from app.text.file_words import not_saved
from app.text.preset_words import PresetWords, preset_not_read
from app.text.words import SettingWords
from app.theme import metrics
from app.views.pieces import button, label
from app.views.sampling_fields import SamplingFields
from runtime.protocol.chat import SamplingSettings

_PLAIN = SamplingSettings()
"""What a sampling of its own begins with."""


class PresetDialog(QDialog):
    """A list of presets, and the chosen one to be changed; what is typed is kept at once."""

    def __init__(self, presets: PresetState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._presets = presets
        self._name = ""
        """Of the preset that is shown."""
        self.setWindowTitle(PresetWords.TITLE)
        self.resize(680, 480)
        self.list = QListWidget()
        self.list.setAccessibleName(PresetWords.TITLE)
        self.list.setFixedWidth(200)
        self.list.currentTextChanged.connect(self._show)
        self.problem = label("", "problem", is_wrapping=True)
        columns = QHBoxLayout()
        columns.setSpacing(metrics.GAP)
        columns.addWidget(self.list)
        columns.addWidget(self._make_form(), 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(metrics.PAGE_MARGIN,) * 4)
        layout.setSpacing(metrics.GAP)
        layout.addWidget(label(PresetWords.PURPOSE, "dim", is_wrapping=True))
        layout.addLayout(columns, 1)
        layout.addWidget(self.problem)
        layout.addLayout(self._make_foot())
        self._fill(presets.presets[0].name if presets.presets else "")
        self.finished.connect(self.deleteLater)

    def _make_form(self) -> QWidget:
        self.form = QWidget()
        form = QFormLayout(self.form)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(10)
        self.name = QLineEdit()
        self.name.setMaxLength(80)
        self.name.editingFinished.connect(self._keep)
        self.instructions = QPlainTextEdit()
        self.instructions.setPlaceholderText(SettingWords.SYSTEM_PROMPT_HINT)
        self.instructions.setTabChangesFocus(True)
        self.instructions.textChanged.connect(self._keep)
        self.own = QCheckBox(PresetWords.OWN_SAMPLING)
        self.own.toggled.connect(self._keep)
        self.sampling = SamplingFields()
        self.name.setAccessibleName(PresetWords.NAME)
        form.addRow(PresetWords.NAME, self.name)
        self.instructions.setAccessibleName(PresetWords.INSTRUCTIONS)
        form.addRow(PresetWords.INSTRUCTIONS, self.instructions)
        form.addRow("", self.own)
        for field in self.sampling.fields.values():
            field.valueChanged.connect(self._keep)
            form.addRow(label(field.accessibleName(), is_wrapping=True), field)
        return self.form

    def _make_foot(self) -> QHBoxLayout:
        foot = QHBoxLayout()
        self.buttons = {}
        for text, act in (
            (PresetWords.NEW, self._on_new),
            (PresetWords.DELETE, self._on_delete),
            (PresetWords.IMPORT, self._on_import),
            (PresetWords.EXPORT, self._on_export),
        ):
            self.buttons[text] = button(text)
            self.buttons[text].setAutoDefault(False)
            self.buttons[text].clicked.connect(act)
            foot.addWidget(self.buttons[text])
        foot.addStretch(1)
        done = button(PresetWords.CLOSE, "primary")
        done.clicked.connect(self.accept)
        foot.addWidget(done)
        return foot

    def _fill(self, chosen: str) -> None:
        """Show the names there are, with one of them chosen."""
        names = [each.name for each in self._presets.presets]
        with QSignalBlocker(self.list):
            self.list.clear()
            self.list.addItems(names)
            self.list.setCurrentRow(names.index(chosen) if chosen in names else -1)
        self._show(chosen if chosen in names else "")

    def _show(self, name: str) -> None:
        preset = self._presets.named(name)
        self._name = name
        self._tell("")
        self.form.setEnabled(preset is not None)
        for text in (PresetWords.DELETE, PresetWords.EXPORT):
            self.buttons[text].setEnabled(preset is not None)
        shown = preset or Preset(name="")
        blockers = [QSignalBlocker(each) for each in (self.name, self.instructions, self.own)]
        self.name.setText(shown.name)
        self.instructions.setPlainText(shown.system_prompt)
        self.own.setChecked(shown.sampling is not None)
        del blockers
        self.sampling.show(shown.sampling or _PLAIN)
        self._enable_sampling()

    def _keep(self) -> None:
        """Keep what the fields say."""
        before = self._presets.named(self._name)
        if before is None:
            return
        sampling = None
        if self.own.isChecked():
            sampling = msgspec.structs.replace(before.sampling or _PLAIN, **self.sampling.values())
        preset = Preset(
            name=" ".join(self.name.text().split()),
            system_prompt=self.instructions.toPlainText(),
            sampling=sampling,
        )
        self._enable_sampling()
        is_kept = self._presets.replace(self._name, preset)
        self._tell("" if is_kept else PresetWords.NAME_TAKEN)
        if is_kept and preset.name != self._name:
            self._fill(preset.name)

    def _enable_sampling(self) -> None:
        for field in self.sampling.fields.values():
            field.setEnabled(self.own.isChecked())

    def _tell(self, text: str) -> None:
        self.problem.setText(text)
        self.problem.setVisible(bool(text))

    def _on_new(self) -> None:
        self._fill(self._presets.add(Preset(name=PresetWords.NEW_NAME)).name)
        self.name.setFocus()
        self.name.selectAll()

    def _on_delete(self) -> None:
        row = self.list.currentRow()
        self._presets.remove(self._name)
        names = [each.name for each in self._presets.presets]
        self._fill(names[min(row, len(names) - 1)] if names else "")

    def _on_export(self) -> None:
        preset = self._presets.named(self._name)
        path, _ = QFileDialog.getSaveFileName(
            self, PresetWords.EXPORT, f"{self._name}.json", PresetWords.FILES
        )
        if path and preset is not None:
            try:
                export_whole(Path(path), preset_file(preset))
            except OSError as error:
                self._tell(not_saved(path, error.strerror or str(error)))

    def _on_import(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, PresetWords.IMPORT, "", PresetWords.FILES)
        if not path:
            return
        try:
            with Path(path).open("rb") as file:
                found = presets_of(file.read(MAX_PRESET_BYTES + 1))
        except (OSError, PresetFileError) as error:
            self._tell(preset_not_read(path))
            self.problem.setToolTip(str(error))
            return
        for preset in found:
            kept = self._presets.add(preset)
        self._fill(kept.name)
