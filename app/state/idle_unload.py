"""Gives back the memory of a model that nobody has asked for a while."""

from PySide6.QtCore import QObject, Signal

from app.state.session import Session
from app.state.settings import SettingsState
from app.state.stages import Stage
from app.timers import single_shot

MS_PER_MINUTE = 60_000


class IdleUnload(QObject):
    """Unloads the model once it has rested for as long as the settings say; 0 never does.

    Threads: window thread.
    """

    unloaded = Signal(str, str)
    """Folder and name of the model that was unloaded."""

    def __init__(
        self, session: Session, settings: SettingsState, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        self._wait_min = settings.values.unload_after_min
        self._timer = single_shot(self, 0, self._on_rested)
        session.changed.connect(self._on_session_changed)
        settings.changed.connect(self._on_settings_changed)

    def note_use(self) -> None:
        """Begin the wait anew: the person is about to ask something."""
        if self._timer.isActive():
            self._timer.start()

    def _on_session_changed(self) -> None:
        is_resting = self._session.stage is Stage.READY and self._wait_min > 0
        if not is_resting:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start(self._wait_min * MS_PER_MINUTE)

    def _on_settings_changed(self) -> None:
        wait_min = self._settings.values.unload_after_min
        if wait_min != self._wait_min:
            self._wait_min = wait_min
            self._timer.stop()
            self._on_session_changed()

    def _on_rested(self) -> None:
        loaded = self._session.loaded
        if loaded is not None:
            self._session.unload()
            self.unloaded.emit(loaded.folder, loaded.name)
