"""The terminal's end of a service that runs in the same process."""

import contextlib
import queue
import signal
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self, TypeVar

from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    BudgetsAdapted,
    CancelRequest,
    ClosingEvent,
    CommandFailed,
    Reply,
)
from runtime.service.requests import Sink
from runtime.service.service import Service

_Closing = TypeVar("_Closing", bound=Reply)
_POLL_S = 0.2
"""How long a wait may last before Windows looks for Ctrl+C again."""


class CommandFailedError(Exception):
    """A command that the service could not carry out, with its report."""

    def __init__(self, report: ErrorReport) -> None:
        super().__init__(report.code)
        self.report = report


class Client:
    """Hands commands to a service and waits for their events.

    Threads: belongs to the main thread; the service's own threads only fill its queue.
    """

    def __init__(
        self,
        make_service: Callable[[Sink], Service],
        on_adapted: Callable[[BudgetsAdapted], None] | None = None,
    ) -> None:
        """``on_adapted`` hears, between other events, of memory that was given back or taken."""
        self._events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
        self._on_adapted = on_adapted
        self._service = make_service(self._events.put)
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._service.close()

    def new_id(self) -> int:
        """Return an id that no command has had."""
        self._last_id += 1
        return self._last_id

    def events(self, command: AnyCommand) -> Iterator[Reply]:
        """Yield the events of a command, the closing one last.

        Raises ``CommandFailedError`` in the place of a failure. An interrupted wait may be
        continued by asking for the next event again.
        """
        self._service.handle(command)
        return _Events(self._events, command.request_id, self._on_adapted)

    def ask(
        self,
        command: AnyCommand,
        expected: type[_Closing],
        on_progress: Callable[[Reply], None] | None = None,
    ) -> _Closing:
        """Return the closing event of a command."""
        for event in self.events(command):
            if isinstance(event, expected):
                return event
            if on_progress is not None:
                on_progress(event)
        raise AssertionError(f"{type(command).__name__} was not closed by {expected.__name__}")

    def follow(self, command: AnyCommand, on_event: Callable[[Reply], None]) -> Reply:
        """Return the closing event of a command that Ctrl+C and a wish to end stop early.

        ``on_event`` is called with every event, the closing one included.
        """
        events = self.events(command)
        signal.signal(signal.SIGTERM, lambda *_: self.cancel(command.request_id))
        closing: Reply | None = None
        while closing is None:
            try:
                for event in events:
                    if isinstance(event, ClosingEvent):
                        closing = event
                    on_event(event)
            except KeyboardInterrupt:
                self.cancel(command.request_id)
        return closing

    def cancel(self, request_id: int) -> None:
        """Ask for the end of another command; its own events tell when that has come."""
        self._service.handle(CancelRequest(request_id=self.new_id(), target_request_id=request_id))


class _Events:
    """Iterator over the events of one request; survives an interrupt, as a generator would not."""

    def __init__(
        self,
        events: "queue.SimpleQueue[AnyEvent]",
        request_id: int,
        on_adapted: Callable[[BudgetsAdapted], None] | None,
    ) -> None:
        self._events = events
        self._on_adapted = on_adapted
        self._request_id = request_id
        self._is_closed = False

    def __iter__(self) -> "_Events":
        return self

    def __next__(self) -> Reply:
        while not self._is_closed:
            with contextlib.suppress(queue.Empty):
                event = self._events.get(timeout=_POLL_S)
                if isinstance(event, BudgetsAdapted) and self._on_adapted is not None:
                    self._on_adapted(event)
                if not isinstance(event, Reply) or event.request_id != self._request_id:
                    continue
                self._is_closed = isinstance(event, ClosingEvent)
                if isinstance(event, CommandFailed):
                    raise CommandFailedError(event.error)
                return event
        raise StopIteration
