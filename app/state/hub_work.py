"""What the window has the runtime for hubs do: its stage, how far it is, why it failed."""

import abc
import enum
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from app.state.hub_link import Asked, HubLink
from runtime.protocol.errors import ErrorReport
from runtime.protocol.hub_messages import DownloadPaused, DownloadProgressed
from runtime.protocol.messages import CommandFailed, Reply

_Stage = TypeVar("_Stage", bound=enum.StrEnum)


class HubWork(QObject, Generic[_Stage]):
    """One thing at a time is asked; what is fetched is told as it comes. Threads: window thread."""

    changed = Signal()

    def __init__(self, link: HubLink, stage: _Stage, failed: _Stage) -> None:
        super().__init__(link)
        self._link = link
        self._failed = failed
        self._asked: Asked | None = None
        self.stage = stage
        self.error: ErrorReport | None = None
        self.done_bytes = 0
        link.lost.connect(self._on_lost)

    @property
    @abc.abstractmethod
    def is_busy(self) -> bool:
        """Whether something is being asked or fetched."""

    @property
    @abc.abstractmethod
    def _resting(self) -> _Stage:
        """Where it is when what was asked was stopped."""

    @property
    def _lost(self) -> _Stage:
        """Where it is when the runtime was ended as wished."""
        return self._resting

    @abc.abstractmethod
    def _on_fetched(self, event: Reply) -> None:
        """Take what came."""

    def stop(self) -> None:
        """Stop what is being asked or fetched; what came is kept."""
        if self._asked is not None and not self._link.cancel(self._asked):
            self._asked = None
            self._set(self._resting)

    def _on_fetch_reply(self, event: Reply) -> None:
        if isinstance(event, DownloadProgressed):
            self.done_bytes = event.done_bytes
            self.changed.emit()
            return
        self._asked = None
        if isinstance(event, CommandFailed):
            self._fail(event.error)
        elif isinstance(event, DownloadPaused):
            self._set(self._resting)
        else:
            self._on_fetched(event)

    def _on_lost(self, error: ErrorReport | None) -> None:
        """Take note that nothing asked will be answered."""
        if not self.is_busy:
            return
        self._asked = None
        if error is None:
            self._set(self._lost)
        else:
            self._fail(error)

    def _fail(self, error: ErrorReport) -> None:
        self.error = error
        self._set(self._failed)

    def _set(self, stage: _Stage) -> None:
        if stage is not self._failed:
            self.error = None
        self.stage = stage
        self.changed.emit()
