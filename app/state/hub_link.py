"""The second runtime of the window, which asks hubs and downloads; it starts when it is wanted.

One loaded model is one runtime process; a download has to outlast it.
"""

import dataclasses
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.link.client import ReplyListener, RuntimeClient, RuntimeEnd
from app.state.answer_flow import ignore
from runtime.protocol.messages import AnyCommand, CancelRequest


@dataclasses.dataclass(slots=True, eq=False)
class Asked:
    """A command that is sent, or will be once the runtime listens."""

    make: Callable[[int], AnyCommand]
    listener: ReplyListener
    request_id: int | None = None
    """None until it is sent."""


class HubLink(QObject):
    """Sends commands to the runtime for hubs, started for the first. Threads: window thread."""

    lost = Signal(object)
    """The ``ErrorReport`` of an end, None if it was wished: nothing asked will be answered."""

    def __init__(self, client: RuntimeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._waiting: list[Asked] = []
        client.opened.connect(self._on_opened)
        client.ended.connect(self._on_ended)

    def ask(self, make: Callable[[int], AnyCommand], listener: ReplyListener) -> Asked:
        """Send a command, now or once the runtime listens."""
        asked = Asked(make, listener)
        self._waiting.append(asked)
        if self._client.is_open:
            self._on_opened()
        else:
            self._client.start()
        return asked

    def cancel(self, asked: Asked) -> bool:
        """Have a command end early; returns False for one that was never sent, and is forgotten."""
        if asked in self._waiting:
            self._waiting.remove(asked)
        target = asked.request_id
        if target is None:
            return False
        self._client.send(
            lambda own_id: CancelRequest(request_id=own_id, target_request_id=target), ignore
        )
        return True

    def close(self) -> None:
        """End the runtime, if there is one; what it downloads is kept."""
        self._waiting.clear()
        self._client.end_now()

    def _on_opened(self) -> None:
        waiting, self._waiting = self._waiting, []
        for asked in waiting:
            asked.request_id = self._client.send(asked.make, asked.listener)

    def _on_ended(self, end: RuntimeEnd) -> None:
        self._waiting.clear()
        self.lost.emit(end.error)
