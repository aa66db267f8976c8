"""Presets: a system prompt and a sampling under a name, for single chats and for models."""

import msgspec
from PySide6.QtCore import QObject, Signal

from app.state.folders import plain_path
from app.state.json_file import pretty
from app.state.settings import SettingsState
from app.state.settings_file import Preset, checked

MAX_PRESET_BYTES = 1 << 20
"""No file with presets is read beyond this."""
_FORMAT = 1


class PresetFileError(Exception):
    """A file holds no preset; the text says why."""


class _PresetFile(msgspec.Struct, frozen=True):
    larder_presets: int
    """Version of the format."""
    presets: list[Preset]


class PresetState(QObject):
    """The person's presets, kept with the settings. Threads: window thread."""

    changed = Signal()
    """Presets or other settings."""
    renamed = Signal(str, str)
    """The name before and after."""

    def __init__(self, settings: SettingsState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        settings.changed.connect(self.changed)

    @property
    def presets(self) -> list[Preset]:
        """All, in the order of their names."""
        return sorted(self._settings.values.presets, key=lambda each: each.name.casefold())

    def named(self, name: str) -> Preset | None:
        """Return the preset of a name; None if there is none."""
        return next((each for each in self._settings.values.presets if each.name == name), None)

    def of_model(self, folder: str) -> str:
        """Return the name of the preset that a model has by itself; empty if it has none."""
        return self._settings.values.model_presets.get(plain_path(folder), "")

    def set_of_model(self, folder: str, name: str) -> None:
        """Give a model a preset for all chats that have none of their own; empty takes it away."""
        models = {**self._settings.values.model_presets, plain_path(folder): name}
        self._settings.change(model_presets={key: each for key, each in models.items() if each})

    def in_force(self, chat_preset: str, folder: str) -> Preset | None:
        """Return the preset of a chat or, where it has none, of the model; None uses settings."""
        return self.named(chat_preset) or self.named(self.of_model(folder))

    def add(self, preset: Preset) -> Preset:
        """Keep a new preset, under a name that is free, and return it."""
        names = {each.name for each in self.presets}
        name, number = preset.name, 2
        while name in names:
            name = f"{preset.name} {number}"
            number += 1
        kept = msgspec.structs.replace(preset, name=name)
        self._settings.change(presets=[*self.presets, kept])
        return kept

    def replace(self, name: str, preset: Preset) -> bool:
        """Put a preset in the place of another; False if its new name is empty or taken."""
        is_renamed = preset.name != name
        if not preset.name.strip() or (is_renamed and self.named(preset.name) is not None):
            return False
        models = self._settings.values.model_presets
        self._settings.change(
            presets=[preset if each.name == name else each for each in self.presets],
            model_presets={
                key: preset.name if each == name else each for key, each in models.items()
            },
        )
        if is_renamed:
            self.renamed.emit(name, preset.name)
        return True

    def remove(self, name: str) -> None:
        """Forget a preset; chats and models that had it are as if they had none."""
        models = self._settings.values.model_presets
        self._settings.change(
            presets=[each for each in self.presets if each.name != name],
            model_presets={key: each for key, each in models.items() if each != name},
        )


def preset_file(preset: Preset) -> bytes:
    """Return a preset as a file that another person can take in."""
    return pretty(_PresetFile(_FORMAT, [preset]))


def presets_of(data: bytes) -> list[Preset]:
    """Return the presets of a file; raises ``PresetFileError``."""
    if len(data) > MAX_PRESET_BYTES:
        raise PresetFileError("larger than any preset")
    try:
        found = msgspec.json.decode(data, type=_PresetFile)
        for preset in found.presets:
            for field in msgspec.structs.fields(Preset):
                checked(field.name, getattr(preset, field.name), Preset)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise PresetFileError(str(error)) from error
    if found.larder_presets > _FORMAT:
        raise PresetFileError(f"format {found.larder_presets}, known is {_FORMAT}")
    good = [each for each in found.presets if each.name.strip()]
    if not good:
        raise PresetFileError("no preset has a name")
    return good
