"""A background process that misbehaves in one way, for tests of the window's side of the channel.

Run as ``python -m tests.support.fake_runtime WAY``; the ways are the functions below.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.framing import FrameSplitter, decode_command, encode
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    CancelAccepted,
    CommandFailed,
    HeartbeatSent,
    OpenSession,
    RuntimeFailed,
    SessionOpened,
)
from runtime.protocol.version import PROTOCOL_VERSION

_ERROR = ErrorReport(code=ErrorCode.INTERNAL, severity=Severity.RUNTIME, detail="made up")


def tell(event: AnyEvent) -> None:
    """Write one frame."""
    write(encode(event))


def write(data: bytes) -> None:
    """Write bytes as they are."""
    while data:
        data = data[os.write(1, data) :]


def listen(answer: Callable[[AnyCommand], None]) -> None:
    """Pass each command on until the pipe closes."""
    splitter = FrameSplitter()
    while data := os.read(0, 65536):
        for payload in splitter.feed(data):
            answer(decode_command(payload))


def opened(command: AnyCommand, version: int = PROTOCOL_VERSION) -> None:
    """Shake hands."""
    if isinstance(command, OpenSession):
        tell(
            SessionOpened(
                request_id=command.request_id,
                protocol_version=version,
                runtime_version="fake",
                process_id=os.getpid(),
            )
        )


def stay() -> None:
    """Do nothing, whatever happens, until killed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def silent() -> None:
    """Shake hands and say nothing more, and do not leave when asked."""
    threading.Thread(target=listen, args=(opened,), daemon=True).start()
    stay()


def dumb() -> None:
    """Never say anything."""
    stay()


def garbage() -> None:
    """Answer the handshake with something that is no message."""
    listen(lambda _: write(b"\x05\x00\x00\x00hello"))


def endless() -> None:
    """Announce a frame that is longer than allowed."""
    listen(lambda _: write(b"\xff\xff\xff\xff"))


def printing() -> None:
    """Write text where frames belong."""
    listen(lambda _: write(b"Loading checkpoint shards: 100%\n"))


def older() -> None:
    """Speak another version."""
    listen(lambda command: opened(command, PROTOCOL_VERSION + 1))


def refusing() -> None:
    """Refuse the handshake."""
    listen(lambda command: tell(CommandFailed(request_id=command.request_id, error=_ERROR)))


def confused() -> None:
    """Answer the handshake with another reply, twice in one write."""

    def answer(command: AnyCommand) -> None:
        frame = encode(CancelAccepted(request_id=command.request_id, was_running=False))
        write(frame + frame)

    listen(answer)


def failing() -> None:
    """Shake hands, tell an error that belongs to no command, and end."""

    def answer(command: AnyCommand) -> None:
        opened(command)
        write(encode(RuntimeFailed(error=_ERROR)) + encode(HeartbeatSent(uptime_s=1.0)))
        sys.exit(3)

    listen(answer)


def exiting() -> None:
    """End at once with words on the error stream."""
    sys.stderr.write("first line\nlast words\n")
    sys.exit(3)


def killed() -> None:
    """End by a signal in the middle of a frame."""

    def answer(command: AnyCommand) -> None:
        opened(command)
        write(b"\x50\x00\x00\x00half a frame")
        os.kill(os.getpid(), signal.SIGKILL)

    listen(answer)


def stubborn() -> None:
    """Shake hands, then leave neither when the pipe closes nor when asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    listen(opened)
    stay()


if __name__ == "__main__":
    ways = (
        silent, dumb, garbage, endless, printing, older, refusing, confused, failing, exiting,
        killed, stubborn,
    )  # fmt: skip
    {way.__name__: way for way in ways}[sys.argv[1]]()
