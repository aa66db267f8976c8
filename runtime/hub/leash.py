"""Ending what comes in on connections at once, which waiting for bytes alone would not."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import httpx2

from runtime.engine.base import CancelToken

_LOOK_S = 0.1


class Leash:
    """Ends what comes in on connections as soon as a person wants no more of it.

    Threads: those that read hold; the leash's own thread waits for the wish.
    """

    def __init__(self, cancel: CancelToken) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="hub leash", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def hold(self, answer: httpx2.Response) -> Iterator[None]:
        """Have the connection of an answer ended on a wish, while the block runs."""
        stream = answer.extensions.get("network_stream")
        held = stream.get_extra_info("socket") if stream is not None else None
        if held is None:
            yield
            return
        with self._lock:
            self._sockets.add(held)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(held)

    def close(self) -> None:
        """Wait for wishes no more."""
        self._is_over.set()
        self._thread.join()

    def _wait(self) -> None:
        while not self._is_over.is_set():
            if not self._cancel.wait(_LOOK_S):
                continue
            with self._lock:
                for held in self._sockets:
                    with contextlib.suppress(OSError):
                        held.shutdown(socket.SHUT_RDWR)
            self._is_over.wait(_LOOK_S)
