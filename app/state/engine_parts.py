"""The engine for graphics cards: offered where there is a card, fetched, given back."""

import enum
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.state.engine_folder import EngineList, engine_folder, give_back, is_there
from app.state.hub_link import Asked, HubLink
from app.state.session import Session
from runtime.protocol.engine_messages import EngineFetched, FetchEngine
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.hub_messages import DownloadPaused, DownloadProgressed
from runtime.protocol.machine import MachineReport
from runtime.protocol.messages import CommandFailed, Reply


class EngineStage(enum.StrEnum):
    """Where the engine is."""

    NOT_NEEDED = "not_needed"
    """No card was found that it would drive, or none can be had."""
    OFFERED = "offered"
    FETCHING = "fetching"
    READY = "ready"
    """It is here; processes that start from the next start of the program on use it."""
    FAILED = "failed"
    GIVEN_BACK = "given_back"
    """It is deleted at the next start."""


class EngineParts(QObject):
    """The engine that packages lack. Threads: window thread."""

    changed = Signal()
    offered = Signal(str)
    """A card, by its name, that the engine inside cannot drive."""

    def __init__(
        self, link: HubLink, session: Session, listed: EngineList | None, data: Path
    ) -> None:
        super().__init__(link)
        self._link = link
        self._session = session
        self._listed = listed
        self._data = data
        self._asked: Asked | None = None
        self.stage = EngineStage.NOT_NEEDED
        self.card = ""
        """The card that it is for."""
        self.error: ErrorReport | None = None
        self.done_bytes = 0
        if listed is not None and is_there(self.folder):
            self.stage = EngineStage.READY
        link.lost.connect(self._on_lost)
        session.changed.connect(self._on_session_changed)

    @property
    def listed(self) -> EngineList | None:
        """What could be fetched."""
        return self._listed

    @property
    def folder(self) -> Path:
        """Where it lies, once it was fetched."""
        assert self._listed is not None
        return engine_folder(self._data, self._listed)

    def fetch(self) -> None:
        """Bring it; what came before is used."""
        listed = self._listed
        if listed is None or self.stage is EngineStage.FETCHING:
            return
        self.done_bytes = 0
        self._set(EngineStage.FETCHING)
        self._asked = self._link.ask(
            lambda request_id: FetchEngine(
                request_id=request_id, parts=listed.parts, folder=str(self.folder)
            ),
            self._on_reply,
        )

    def stop(self) -> None:
        """Stop for now; what came is kept."""
        if self._asked is not None and not self._link.cancel(self._asked):
            self._asked = None
            self._set(EngineStage.OFFERED)

    def give_back(self) -> None:
        """Go back to the engine inside, from the next start on."""
        try:
            give_back(self.folder)
        except OSError as error:
            self._fail(
                ErrorReport(
                    code=ErrorCode.DISK_NOT_WRITABLE,
                    severity=Severity.REQUEST,
                    parameters={
                        "folder": str(self.folder),
                        "reason": error.strerror or str(error),
                    },
                )
            )
            return
        self._set(EngineStage.GIVEN_BACK)

    def _on_session_changed(self) -> None:
        machine = self._session.machine
        if self._listed is None or machine is None or self.stage is not EngineStage.NOT_NEEDED:
            return
        self.card = undriven_card(machine)
        if self.card:
            self._set(EngineStage.OFFERED)
            self.offered.emit(self.card)

    def _on_reply(self, event: Reply) -> None:
        if isinstance(event, DownloadProgressed):
            self.done_bytes = event.done_bytes
            self.changed.emit()
            return
        self._asked = None
        if isinstance(event, CommandFailed):
            self._fail(event.error)
        elif isinstance(event, DownloadPaused):
            self._set(EngineStage.OFFERED)
        elif isinstance(event, EngineFetched):
            self.card = event.card
            self._set(EngineStage.READY)

    def _on_lost(self, error: ErrorReport | None) -> None:
        """Take note that nothing asked will be answered."""
        if self.stage is not EngineStage.FETCHING:
            return
        self._asked = None
        if error is None:
            self._set(EngineStage.OFFERED)
        else:
            self._fail(error)

    def _fail(self, error: ErrorReport) -> None:
        self.error = error
        self._set(EngineStage.FAILED)

    def _set(self, stage: EngineStage) -> None:
        if stage is not EngineStage.FAILED:
            self.error = None
        self.stage = stage
        self.changed.emit()


def undriven_card(machine: MachineReport) -> str:
    """Return the first NVIDIA card that the installed engine leaves alone; empty for none."""
    cards = [card for card in machine.devices if card.device.startswith("cuda:")]
    if any(card.is_used or card.is_simulated for card in cards):
        return ""
    return cards[0].name if cards else ""
