"""Commands between their arrival and their one closing event."""

import threading
from collections.abc import Callable

from runtime.engine.base import CancelToken
from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import AnyEvent, CommandFailed

Sink = Callable[[AnyEvent], None]
"""Takes an event from any thread, at once."""


class Request:
    """One open command; the first closing event counts and everything after it is dropped.

    Threads: any thread may call any method.
    """

    def __init__(self, request_id: int, requests: "OpenRequests", sink: Sink) -> None:
        self.request_id = request_id
        self.cancel = CancelToken()
        self.is_cancellable = False
        """Whether cancelling it means something; set by the command thread."""
        self._requests = requests
        self._sink = sink
        self._lock = threading.Lock()
        self._is_closed = False

    def tell(self, event: AnyEvent) -> None:
        """Send a progress event, unless the command is closed."""
        with self._lock:
            if not self._is_closed:
                self._sink(event)

    def close(self, event: AnyEvent) -> None:
        """Send the closing event, unless there was one; its id is free before anybody sees it."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._requests.forget(self.request_id)
            self._sink(event)

    def fail(self, error: ErrorReport) -> None:
        """Close with an error."""
        self.close(CommandFailed(request_id=self.request_id, error=error))


class OpenRequests:
    """The open commands by id.

    Threads: any thread may call any method.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._by_id: dict[int, Request] = {}

    def open(self, request_id: int) -> Request | None:
        """Return the new request, or None if its id is in use."""
        request = Request(request_id, self, self._sink)
        with self._lock:
            if request_id in self._by_id:
                return None
            self._by_id[request_id] = request
        return request

    def find(self, request_id: int) -> Request | None:
        """Return the open request of this id, if there is one."""
        with self._lock:
            return self._by_id.get(request_id)

    def forget(self, request_id: int) -> None:
        """Make an id free again."""
        with self._lock:
            self._by_id.pop(request_id, None)

    def all(self) -> list[Request]:
        """Return the open requests, oldest first."""
        with self._lock:
            return list(self._by_id.values())
