"""The engine for graphics cards: offered where there is a card, fetched, given back."""

import enum
from pathlib import Path

from PySide6.QtCore import Signal

from app.state.engine_folder import EngineList, engine_folder, give_back, is_there
from app.state.hub_link import HubLink
from app.state.hub_work import HubWork
from app.state.session import Session
from runtime.protocol.engine_messages import EngineFetched, FetchEngine
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.machine import MachineReport
from runtime.protocol.messages import Reply


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


class EngineParts(HubWork[EngineStage]):
    """The engine that packages lack. Threads: window thread."""

    offered = Signal(str)
    """A card, by its name, that the engine inside cannot drive."""

    def __init__(
        self, link: HubLink, session: Session, listed: EngineList | None, data: Path
    ) -> None:
        super().__init__(link, EngineStage.NOT_NEEDED, EngineStage.FAILED)
        self._session = session
        self._listed = listed
        self._data = data
        self.card = ""
        """The card that it is for."""
        if self.is_here:
            self.stage = EngineStage.READY
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

    @property
    def is_here(self) -> bool:
        """Whether it was fetched and not given back."""
        return self._listed is not None and is_there(self.folder)

    @property
    def is_busy(self) -> bool:
        """Whether it is being fetched."""
        return self.stage is EngineStage.FETCHING

    def fetch(self) -> None:
        """Bring it; what came before is used."""
        listed = self._listed
        if listed is None or self.is_busy:
            return
        self.done_bytes = 0
        self._set(EngineStage.FETCHING)
        self._asked = self._link.ask(
            lambda request_id: FetchEngine(
                request_id=request_id, parts=listed.parts, folder=str(self.folder)
            ),
            self._on_fetch_reply,
        )

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

    @property
    def _resting(self) -> EngineStage:
        return EngineStage.OFFERED

    def _on_fetched(self, event: Reply) -> None:
        if isinstance(event, EngineFetched):
            self.card = event.card
            self._set(EngineStage.READY)


def undriven_card(machine: MachineReport) -> str:
    """Return the first NVIDIA card that the installed engine leaves alone; empty for none."""
    cards = [card for card in machine.devices if card.device.startswith("cuda:")]
    if any(card.is_used or card.is_simulated for card in cards):
        return ""
    return cards[0].name if cards else ""
