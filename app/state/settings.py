"""What a person chose, kept in one JSON file."""

from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from app.state.json_file import pretty, set_aside, write_whole
from app.state.settings_file import (
    SettingNotice,
    SettingProblem,
    Settings,
    ThemeChoice,
    checked,
    read_settings,
)
from app.timers import single_shot

SAVE_DELAY_MS = 500
"""Changes within this time are written together, so that a moving slider writes once."""


class SettingsState(QObject):
    """The settings in force. Threads: window thread."""

    changed = Signal()
    noticed = Signal(object)
    """A ``SettingNotice`` that arose after the start."""

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._values, self._notices = read_settings(path)
        self._save_timer = single_shot(self, SAVE_DELAY_MS, self.save)
        if self._notices:
            self._keep_original()

    @property
    def values(self) -> Settings:
        """All settings."""
        return self._values

    @property
    def notices(self) -> list[SettingNotice]:
        """What was wrong with the file at the start."""
        return list(self._notices)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def change(self, **changes: object) -> None:
        """Replace some settings; raises ``ValueError`` for a value that is not allowed."""
        good = {name: checked(name, value, Settings) for name, value in changes.items()}
        values: Settings = msgspec.structs.replace(self._values, **good)
        if values != self._values:
            self._values = values
            self._save_timer.start()
            self.changed.emit()

    def reset(self) -> None:
        """Go back to the defaults, but keep what is no preference."""
        kept = self._values
        self.change(
            **msgspec.structs.asdict(
                Settings(
                    is_welcomed=kept.is_welcomed,
                    last_folder=kept.last_folder,
                    last_plan=kept.last_plan,
                    model_roots=kept.model_roots,
                    left_out_roots=kept.left_out_roots,
                    presets=kept.presets,
                    model_presets=kept.model_presets,
                    window_geometry=kept.window_geometry,
                )
            )
        )

    def save(self) -> None:
        """Write what was not written yet."""
        self._save_timer.stop()
        try:
            write_whole(self._path, pretty(self._values))
        except OSError as error:
            self._notice(error)

    def close(self) -> None:
        """Write what was not written yet, at the end of the program."""
        if self._save_timer.isActive():
            self.save()

    def _keep_original(self) -> None:
        """Keep a file of which not all could be taken, because the next save replaces it."""
        if self._notices[0].problem is not SettingProblem.UNREADABLE:
            try:
                set_aside(self._path)
                write_whole(self._path, pretty(self._values))
            except OSError as error:
                self._notice(error)

    def _notice(self, error: OSError) -> None:
        notice = SettingNotice(
            SettingProblem.NOT_SAVED, str(self._path), error.strerror or str(error)
        )
        if notice not in self._notices:
            self._notices.append(notice)
            self.noticed.emit(notice)


__all__ = ["SettingNotice", "SettingProblem", "Settings", "SettingsState", "ThemeChoice"]
