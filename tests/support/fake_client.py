"""A client of the window whose runtime is played by the test."""

from collections.abc import Callable
from typing import TypeVar

from app.link.client import ReplyListener, RuntimeClient, RuntimeEnd, is_closing
from app.link.process import ProcessOutcome, RuntimeCommand, RuntimeProcess
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.framing import encode
from runtime.protocol.messages import AnyCommand, Event, Reply, SessionOpened
from runtime.protocol.version import PROTOCOL_VERSION

_Command = TypeVar("_Command")


class FakeClient(RuntimeClient):
    """Keeps what is sent; the test opens, answers and ends it."""

    def __init__(self) -> None:
        super().__init__(RuntimeProcess(RuntimeCommand()))
        self.sent: list[AnyCommand] = []
        self.num_starts = 0
        self.stops: list[bool] = []
        self.is_gone = True
        self._is_heard = False
        self._waiting: dict[int, ReplyListener] = {}
        self._count = 0

    @property
    def is_open(self) -> bool:
        return self._is_heard

    @property
    def is_stopped(self) -> bool:
        return self.is_gone

    def start(self) -> None:
        self.num_starts += 1
        self.is_gone = False

    def send(self, make: Callable[[int], AnyCommand], listener: ReplyListener) -> int | None:
        if not self._is_heard:
            return None
        self._count += 1
        command = make(self._count)
        encode(command)
        self.sent.append(command)
        self._waiting[self._count] = listener
        return self._count

    def stop(self, *, at_once: bool = False) -> None:
        self._is_heard = False
        self.stops.append(at_once)

    def end_now(self) -> None:
        self.stop()
        self.end()

    def open(self) -> None:
        """Shake hands."""
        self._is_heard = True
        self.opened.emit(
            SessionOpened(
                request_id=0,
                protocol_version=PROTOCOL_VERSION,
                runtime_version="test",
                process_id=1,
            )
        )

    def last(self, kind: type[_Command]) -> _Command:
        """Return the newest command of a kind."""
        return next(item for item in reversed(self.sent) if isinstance(item, kind))

    def count(self, kind: type[object]) -> int:
        """Return how many commands of a kind were sent."""
        return sum(isinstance(item, kind) for item in self.sent)

    def answer(self, event: Event) -> None:
        """Deliver an event."""
        self.event_received.emit(event)
        if isinstance(event, Reply):
            listener = self._waiting.get(event.request_id)
            if is_closing(event):
                self._waiting.pop(event.request_id, None)
            if listener is not None:
                listener(event)

    def end(self, error: ErrorReport | None = None) -> None:
        """End the process: as it was wished, or with an error."""
        self._is_heard = False
        self.is_gone = True
        self._waiting.clear()
        outcome = ProcessOutcome(
            0 if error is None else 9, error is not None, error is None, "signal 9", ("last",), ""
        )
        self.ended.emit(RuntimeEnd(error, outcome))

    def crash(self) -> ErrorReport:
        """End the process by a signal; return the report."""
        error = ErrorReport(
            code=ErrorCode.RUNTIME_ENDED,
            severity=Severity.RUNTIME,
            parameters={"exit_status": 9, "reason": "signal 9"},
        )
        self.end(error)
        return error
