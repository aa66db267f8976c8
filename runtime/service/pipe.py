"""The two ends of the channel's pipe: commands read, events written."""

import logging
import os
import threading
from collections.abc import Callable, Iterator

from runtime.errors import LarderError, report_of
from runtime.protocol import framing
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import AnyCommand, AnyEvent, CommandFailed, Reply, RuntimeFailed
from runtime.service.outbox import Outbox

_READ_BYTES = 64 * 1024
_logger = logging.getLogger(__name__)


def read_commands(fd: int) -> Iterator[AnyCommand]:
    """Yield the commands of the other side until it closes the pipe.

    Whatever is not a whole known command raises ``LarderError`` with ``FRAME_INVALID``.
    """
    splitter = framing.FrameSplitter()
    try:
        while data := _read(fd):
            for payload in splitter.feed(data):
                yield framing.decode_command(payload)
    except framing.FrameError as error:
        raise LarderError(ErrorCode.FRAME_INVALID, reason=str(error)) from error
    if splitter.num_held_bytes:
        raise LarderError(
            ErrorCode.FRAME_INVALID,
            reason=f"the stream ended inside a frame, {splitter.num_held_bytes} bytes into it",
        )


def _read(fd: int) -> bytes:
    """Return what the pipe holds, waiting for at least one byte; empty at its end."""
    try:
        return os.read(fd, _READ_BYTES)
    except BrokenPipeError:  # what Windows says where other systems return nothing
        return b""


def _encoded(event: AnyEvent) -> bytes:
    """Return the frame of an event, or of the failure that it cannot be put into one."""
    try:
        return framing.encode(event)
    except framing.FrameError as error:
        _logger.exception("an event cannot be sent")
        report = report_of(LarderError(ErrorCode.FRAME_INVALID, reason=str(error)))
        return framing.encode(
            CommandFailed(request_id=event.request_id, error=report)
            if isinstance(event, Reply)
            else RuntimeFailed(error=report)
        )


class Writer:
    """The thread that writes what the outbox holds, and the only one that waits for the pipe.

    Threads: made and joined by the command thread; ``on_broken`` is called by its own thread.
    """

    def __init__(self, fd: int, outbox: Outbox, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._outbox = outbox
        self._on_broken = on_broken
        self._thread = threading.Thread(target=self._run, name="channel writer", daemon=True)

    def start(self) -> None:
        """Begin writing."""
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait until all is written after ``Outbox.finish``; return whether it was."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while (event := self._outbox.take()) is not None:
                self._write(event)
        except OSError as error:
            _logger.info("nobody reads the channel any more: %s", error)
            self._outbox.finish()
            self._on_broken()

    def _write(self, event: AnyEvent) -> None:
        left = memoryview(_encoded(event))
        while left:
            left = left[os.write(self._fd, left) :]
