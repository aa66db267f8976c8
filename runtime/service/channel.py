"""The channel: frames from the window become commands, events become frames."""

import enum
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.messages import (
    AnyCommand,
    HeartbeatSent,
    OpenSession,
    RuntimeFailed,
    SessionOpened,
    StopRuntime,
)
from runtime.protocol.version import PROTOCOL_VERSION
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.outbox import Outbox
from runtime.service.pipe import Writer, read_commands
from runtime.service.requests import Sink
from runtime.service.version import runtime_version

HEARTBEAT_S = 2.0
OPEN_TIMEOUT_S = 30.0
FLUSH_TIMEOUT_S = 1.0


class ExitStatus(enum.IntEnum):
    """How the process ends."""

    ENDED = 0
    """Asked to stop, or the window closed the channel."""
    INTERNAL = 1
    FRAME_INVALID = 3
    PROTOCOL_MISMATCHED = 4


_STATUSES = {
    ErrorCode.FRAME_INVALID: ExitStatus.FRAME_INVALID,
    ErrorCode.PROTOCOL_MISMATCHED: ExitStatus.PROTOCOL_MISMATCHED,
}


class Commands(Protocol):
    """What the channel needs of a service."""

    def handle(self, command: AnyCommand) -> bool:
        """Begin a command; return whether more may follow."""

    def close(self) -> object:
        """End everything within a few seconds."""


class Channel:
    """One session over one pair of handles.

    Threads: made and served by the main thread, which thereby is the command thread; the sink
    handed to the service may be called by any. ``leaving`` is called once, by the main thread or
    the writer's, before the service is closed; ``leave`` ends the process when the pipe broke.
    """

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        leaving: Callable[[], None],
        leave: Callable[[ExitStatus], None],
        error_log: ErrorLog,
    ) -> None:
        self._outbox = Outbox()
        self._commands = read_commands(read_fd)
        self._writer = Writer(write_fd, self._outbox, self._on_broken)
        self._leaving = leaving
        self._leave = leave
        self._error_log = error_log
        self._is_ended = threading.Event()
        self._started_s = time.monotonic()
        self._service: Commands | None = None
        self._status = ExitStatus.ENDED

    def serve(self, make_service: Callable[[Sink], Commands]) -> ExitStatus:
        """Serve the session to its end; return the status for the process to end with."""
        self._writer.start()
        run_guarded(lambda: self._serve(make_service), self._fail, self._error_log)
        self._is_ended.set()
        self._leaving()
        if self._service is not None:
            self._service.close()
        self._outbox.finish()
        self._writer.join(FLUSH_TIMEOUT_S)
        return self._status

    def _serve(self, make_service: Callable[[Sink], Commands]) -> None:
        opening = threading.Timer(OPEN_TIMEOUT_S, self._leave, (ExitStatus.PROTOCOL_MISMATCHED,))
        opening.daemon = True
        opening.start()
        try:
            is_opened = self._open()
        finally:
            opening.cancel()
        if not is_opened:
            return
        self._service = make_service(self._outbox.put)
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        for command in self._commands:
            if isinstance(command, StopRuntime):
                self._leaving()
            if not self._service.handle(command):
                return

    def _open(self) -> bool:
        """Read the first frame and answer it; return False if there was none."""
        first = next(self._commands, None)
        if first is None:
            return False
        if not isinstance(first, OpenSession):
            raise LarderError(
                ErrorCode.PROTOCOL_MISMATCHED, found=type(first).__name__, expected="OpenSession"
            )
        if first.protocol_version != PROTOCOL_VERSION:
            raise LarderError(
                ErrorCode.PROTOCOL_MISMATCHED,
                found=first.protocol_version,
                expected=PROTOCOL_VERSION,
            )
        self._outbox.put(
            SessionOpened(
                request_id=first.request_id,
                protocol_version=PROTOCOL_VERSION,
                runtime_version=runtime_version(),
                process_id=os.getpid(),
            )
        )
        return True

    def _fail(self, error: ErrorReport) -> None:
        """Tell an error that belongs to no command; the process ends after it."""
        self._status = _STATUSES.get(error.code, ExitStatus.INTERNAL)
        self._outbox.put(RuntimeFailed(error=error))

    def _beat(self) -> None:
        while not self._is_ended.wait(HEARTBEAT_S):
            self._outbox.put(HeartbeatSent(uptime_s=time.monotonic() - self._started_s))

    def _on_broken(self) -> None:
        """Leave after the other side stopped reading: nothing can be told any more."""
        if self._is_ended.is_set():
            return
        self._leaving()
        if self._service is not None:
            self._service.close()
        self._leave(ExitStatus.ENDED)
