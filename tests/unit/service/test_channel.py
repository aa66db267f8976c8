"""The channel over a pair of pipes in this process."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from runtime.protocol.errors import ErrorCode
from runtime.protocol.framing import FrameSplitter, decode_event, encode
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    HeartbeatSent,
    InspectModel,
    OpenSession,
    RuntimeFailed,
    RuntimeStopped,
    SessionOpened,
    StopRuntime,
    TokensGenerated,
)
from runtime.protocol.version import PROTOCOL_VERSION
from runtime.service.channel import Channel, Commands, ExitStatus
from runtime.service.log import ErrorLog
from runtime.service.requests import Sink

OPEN = OpenSession(request_id=1, protocol_version=PROTOCOL_VERSION, client_name="test")


class RecordingService:
    """A service that keeps what it was given and answers nothing but the end."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.commands: list[AnyCommand] = []
        self.num_closed = 0

    def handle(self, command: AnyCommand) -> bool:
        self.commands.append(command)
        if isinstance(command, StopRuntime):
            self.sink(RuntimeStopped(request_id=command.request_id))
            return False
        return True

    def close(self) -> None:
        self.num_closed += 1


class Session:
    """A channel with both ends in this process; ``run`` serves what was written to its end."""

    def __init__(self) -> None:
        self.read_fd, self.far_write_fd = os.pipe()
        self.far_read_fd, self.write_fd = os.pipe()
        self.left = threading.Event()
        self.leave_statuses: list[ExitStatus] = []
        self.num_leavings = 0
        self.services: list[RecordingService] = []
        self.channel = Channel(self.read_fd, self.write_fd, self._leaving, self._leave, ErrorLog())

    def _leaving(self) -> None:
        self.num_leavings += 1

    def _leave(self, status: ExitStatus) -> None:
        self.leave_statuses.append(status)
        self.left.set()

    def make_service(self, sink: Sink) -> Commands:
        self.services.append(RecordingService(sink))
        return self.services[-1]

    def send(self, *commands: AnyCommand) -> None:
        for command in commands:
            os.write(self.far_write_fd, encode(command))

    def run(self) -> ExitStatus:
        os.close(self.far_write_fd)
        self.far_write_fd = -1
        status = self.channel.serve(self.make_service)
        os.close(self.write_fd)
        self.write_fd = -1
        return status

    def received(self) -> list[AnyEvent]:
        splitter = FrameSplitter()
        events: list[AnyEvent] = []
        while data := os.read(self.far_read_fd, 65536):
            events += map(decode_event, splitter.feed(data))
        return events

    def close(self) -> None:
        for fd in (self.read_fd, self.write_fd, self.far_read_fd, self.far_write_fd):
            with contextlib.suppress(OSError):
                os.close(fd)


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session()
    yield made
    made.close()


def test_channel_with_a_session_hands_on_commands_and_events(session: Session) -> None:
    inspect = InspectModel(request_id=2, folder="/x")
    session.send(OPEN, inspect, StopRuntime(request_id=3), InspectModel(request_id=4, folder=""))
    assert session.run() is ExitStatus.ENDED
    opened, stopped = session.received()
    assert isinstance(opened, SessionOpened)
    assert opened.process_id == os.getpid()
    assert isinstance(stopped, RuntimeStopped)
    assert session.services[0].commands == [inspect, StopRuntime(request_id=3)]
    assert session.services[0].num_closed == 1
    assert session.num_leavings >= 1


def test_channel_closed_before_the_first_frame_ends_without_a_service(session: Session) -> None:
    assert session.run() is ExitStatus.ENDED
    assert session.services == []
    assert session.received() == []


@pytest.mark.parametrize(
    "first",
    [OpenSession(request_id=1, protocol_version=99, client_name=""), StopRuntime(request_id=1)],
    ids=["other version", "other command"],
)
def test_channel_with_a_wrong_first_frame_tells_both_sides_of_it(
    session: Session, first: AnyCommand
) -> None:
    session.send(first)
    assert session.run() is ExitStatus.PROTOCOL_MISMATCHED
    (failed,) = session.received()
    assert isinstance(failed, RuntimeFailed)
    assert failed.error.code is ErrorCode.PROTOCOL_MISMATCHED
    assert set(failed.error.parameters) == {"found", "expected"}
    assert session.services == []


@pytest.mark.parametrize(
    "broken",
    [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\3\0\0\0abc", b"\5\0\0\0ab", b"\2\0", encode(OPEN)[:-1]],
    ids=["empty", "oversized", "garbage", "cut payload", "cut length", "cut command"],
)
@pytest.mark.parametrize("is_opened", [True, False])
def test_channel_with_a_malformed_frame_tells_it_and_ends(
    session: Session, broken: bytes, is_opened: bool
) -> None:
    if is_opened:
        session.send(OPEN)
    os.write(session.far_write_fd, broken)
    assert session.run() is ExitStatus.FRAME_INVALID
    failed = session.received()[-1]
    assert isinstance(failed, RuntimeFailed)
    assert failed.error.code is ErrorCode.FRAME_INVALID
    assert failed.error.parameters["reason"]
    assert [service.num_closed for service in session.services] == [1] * is_opened


@pytest.mark.expects_log("runtime.service.log", "ERROR")
def test_channel_with_a_service_that_breaks_tells_it_and_ends(session: Session) -> None:
    def broken(_: Sink) -> Commands:
        raise ZeroDivisionError

    session.make_service = broken  # type: ignore[method-assign, assignment]
    session.send(OPEN)
    assert session.run() is ExitStatus.INTERNAL
    failed = session.received()[-1]
    assert isinstance(failed, RuntimeFailed)
    assert failed.error.code is ErrorCode.INTERNAL


@pytest.mark.expects_log("runtime.service.pipe", "ERROR")
def test_channel_with_an_event_too_long_to_send_fails_its_command(session: Session) -> None:
    def make(sink: Sink) -> Commands:
        sink(TokensGenerated(request_id=7, token_ids=[], text="x" * (17 << 20)))
        sink(RuntimeStopped(request_id=8))
        return RecordingService(sink)

    session.make_service = make  # type: ignore[method-assign]
    session.send(OPEN)
    assert session.run() is ExitStatus.ENDED
    _, failed, after = session.received()
    assert getattr(failed, "request_id", None) == 7
    assert getattr(failed, "error").code is ErrorCode.FRAME_INVALID  # noqa: B009 - any event
    assert after == RuntimeStopped(request_id=8)


def test_channel_that_nobody_reads_any_more_leaves(session: Session) -> None:
    makes: Callable[[Sink], Commands] = session.make_service
    threading.Thread(target=session.channel.serve, args=(makes,), daemon=True).start()
    session.send(OPEN)
    assert os.read(session.far_read_fd, 65536)
    os.close(session.far_read_fd)
    while not session.services:
        assert not session.left.wait(0.001)
    session.services[0].sink(HeartbeatSent(uptime_s=0))
    assert session.left.wait(20)
    assert session.leave_statuses == [ExitStatus.ENDED]
    assert session.services[0].num_closed == 1
