"""The figures of this PC that a person may state, as the runtime tells and keeps them."""

from PySide6.QtCore import QObject, Signal

from app.state.session import Session
from app.state.stages import Stage
from runtime.protocol.errors import ErrorReport
from runtime.protocol.figure_messages import (
    DescribeFigures,
    Figure,
    FiguresDescribed,
    StateFigure,
)
from runtime.protocol.messages import CommandFailed, Reply

_WITHOUT_RUNTIME = (Stage.NO_RUNTIME, Stage.STOPPING, Stage.FAILED)


class MachineFigures(QObject):
    """Asks when it is wanted, states what the person types, and keeps why something was refused.

    Threads: window thread.
    """

    changed = Signal()

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.figures: list[Figure] = []
        self.file = ""
        self.is_fixed = False
        self.is_measuring = False
        self.error: ErrorReport | None = None
        self.error_name = ""
        """The figure that was refused; empty where the error is about all."""
        self._is_wanted = False
        session.changed.connect(self._on_session_changed)

    def look(self, *, is_fresh: bool = False) -> None:
        """Ask for the figures; fresh measures what can be measured anew."""
        folder = self._folder()
        is_asked = self._session.ask(
            lambda request_id: DescribeFigures(
                request_id=request_id, folder=folder, is_fresh=is_fresh
            ),
            lambda event: self._on_told("", event),
        )
        self._is_wanted = not is_asked
        self.is_measuring = is_asked
        self.changed.emit()

    def state(self, name: str, number: float | None = None, text: str = "") -> None:
        """State a figure, or take it back with neither number nor text.

        Without a runtime, which the window tells of, all stays as it was and is shown so.
        """
        folder = self._folder()
        is_asked = self._session.ask(
            lambda request_id: StateFigure(
                request_id=request_id, name=name, number=number, text=text, folder=folder
            ),
            lambda event: self._on_told(name, event),
        )
        if not is_asked:
            self.changed.emit()

    def refuse(self, name: str, error: ErrorReport) -> None:
        """Say that what was typed is no number."""
        self.error, self.error_name = error, name
        self.changed.emit()

    def forgive(self, name: str) -> None:
        """Forget why a figure was refused: what was typed is gone."""
        if self.error_name == name:
            self.error, self.error_name = None, ""
            self.changed.emit()

    def _on_session_changed(self) -> None:
        """Ask again what a runtime that went did not answer, once there is the next."""
        if self._session.stage in _WITHOUT_RUNTIME:
            if self.is_measuring:
                self.is_measuring, self._is_wanted = False, True
                self.changed.emit()
        elif self._is_wanted:
            self.look()

    def _folder(self) -> str:
        """Return whose drive is meant: the loaded model's."""
        loaded = self._session.loaded
        return loaded.folder if loaded is not None else ""

    def _on_told(self, name: str, event: Reply) -> None:
        self.is_measuring = False
        self.error = event.error if isinstance(event, CommandFailed) else None
        self.error_name = name if self.error is not None else ""
        if isinstance(event, FiguresDescribed):
            before, self.figures = self.figures, event.figures
            self.file, self.is_fixed = event.file, event.is_fixed
            if before and _stated(before) != _stated(event.figures):
                self._session.look_at_machine()
        self.changed.emit()


def _stated(figures: list[Figure]) -> list[tuple[float | None, str]]:
    return [(each.stated, each.stated_text) for each in figures]
