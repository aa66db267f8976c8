"""Frames: golden bytes, and everything that is not a frame."""

import itertools
import typing
from collections.abc import Callable
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from runtime.protocol import framing
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.framing import FrameError, FrameSplitter
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    ClosingEvent,
    Command,
    Event,
    HeartbeatSent,
    InspectModel,
    Reply,
    RuntimeFailed,
    TokensGenerated,
)
from runtime.protocol.version import MAX_FRAME_BYTES
from tests.protocol.examples import COMMANDS, EVENTS, golden_lines

GOLDEN = Path(__file__).parents[1] / "golden" / "protocol" / "frames.txt"
HEARTBEAT = framing.encode(HeartbeatSent(uptime_s=2.0))


def _payload(frame: bytes) -> bytes:
    return frame[framing.LENGTH_BYTES :]


def is_message_or_refused(decode: Callable[[bytes], AnyCommand | AnyEvent], data: bytes) -> bool:
    """Whether bytes are taken for a message or refused in the one way there is."""
    try:
        return isinstance(decode(data), Command | Event)
    except FrameError as error:
        return bool(str(error))


def test_frames_of_every_message_are_the_golden_bytes() -> None:
    assert golden_lines() == GOLDEN.read_text(encoding="utf-8").splitlines()


def test_examples_hold_every_message_once() -> None:
    assert {type(command) for command in COMMANDS} == set(typing.get_args(AnyCommand))
    assert {type(event) for event in EVENTS} == set(typing.get_args(AnyEvent))
    assert len(COMMANDS) + len(EVENTS) == len(golden_lines())


def test_closing_events_are_replies() -> None:
    assert all(issubclass(kind, Reply) for kind in typing.get_args(ClosingEvent))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda message: type(message).__name__)
def test_decode_command_of_its_frame_returns_it(command: AnyCommand) -> None:
    assert framing.decode_command(_payload(framing.encode(command))) == command


@pytest.mark.parametrize("event", EVENTS, ids=lambda message: type(message).__name__)
def test_decode_event_of_its_frame_returns_it(event: AnyEvent) -> None:
    assert framing.decode_event(_payload(framing.encode(event))) == event


def test_decode_command_of_an_event_is_refused() -> None:
    with pytest.raises(FrameError, match="not a command"):
        framing.decode_command(_payload(HEARTBEAT))


def test_decode_event_of_a_command_is_refused() -> None:
    with pytest.raises(FrameError, match="not an event"):
        framing.decode_event(_payload(framing.encode(COMMANDS[0])))


@pytest.mark.parametrize("length", [0, MAX_FRAME_BYTES + 1, 0xFFFFFFFF])
def test_splitter_with_a_refused_length_raises_before_the_payload_comes(length: int) -> None:
    with pytest.raises(FrameError, match="was announced"):
        list(FrameSplitter().feed(length.to_bytes(4, "little")))


def test_payload_length_of_a_cut_prefix_is_refused() -> None:
    with pytest.raises(FrameError, match="3 of 4"):
        framing.payload_length(b"\1\0\0")


def test_encode_of_an_oversized_message_is_refused() -> None:
    with pytest.raises(FrameError, match="the limit is"):
        framing.encode(TokensGenerated(request_id=1, token_ids=[], text="x" * MAX_FRAME_BYTES))


def test_encode_of_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(FrameError, match="not Unicode"):
        framing.encode(InspectModel(request_id=1, folder="\udcff"))


def test_splitter_with_every_cut_of_a_frame_holds_it_back() -> None:
    for cut in range(len(HEARTBEAT)):
        splitter = FrameSplitter()
        assert list(splitter.feed(HEARTBEAT[:cut])) == []
        assert splitter.num_held_bytes == cut
        assert list(splitter.feed(HEARTBEAT[cut:])) == [_payload(HEARTBEAT)]


def test_decode_event_with_an_unknown_field_is_read_without_it() -> None:
    fields = msgspec.msgpack.decode(_payload(HEARTBEAT)) | {"added_later": 1}
    assert framing.decode_event(msgspec.msgpack.encode(fields)) == HeartbeatSent(uptime_s=2.0)


def test_decode_event_nested_without_end_is_refused() -> None:
    with pytest.raises(FrameError):
        framing.decode_event(b"\x81\xa1x" * 100_000)


def test_decode_event_with_an_unknown_error_code_is_refused() -> None:
    report = ErrorReport(code=ErrorCode.INTERNAL, severity=Severity.RUNTIME)
    payload = _payload(framing.encode(RuntimeFailed(error=report)))
    with pytest.raises(FrameError):
        framing.decode_event(payload.replace(b"internal", b"invented"))


@hypothesis.given(payload=st.binary(max_size=200))
def test_decode_of_garbage_raises_nothing_but_frame_errors(payload: bytes) -> None:
    assert is_message_or_refused(framing.decode_command, payload)
    assert is_message_or_refused(framing.decode_event, payload)


@hypothesis.given(
    message=st.sampled_from([*COMMANDS, *EVENTS]),
    position=st.integers(min_value=0),
    byte=st.integers(0, 255),
)
def test_decode_of_a_message_with_one_wrong_byte_raises_nothing_but_frame_errors(
    message: AnyCommand | AnyEvent, position: int, byte: int
) -> None:
    payload = bytearray(_payload(framing.encode(message)))
    payload[position % len(payload)] = byte
    assert is_message_or_refused(framing.decode_command, bytes(payload))
    assert is_message_or_refused(framing.decode_event, bytes(payload))


@hypothesis.given(
    messages=st.lists(st.sampled_from(EVENTS), max_size=6), cuts=st.lists(st.integers(0, 4000))
)
def test_splitter_with_a_stream_cut_anywhere_returns_the_messages(
    messages: list[AnyEvent], cuts: list[int]
) -> None:
    stream = b"".join(map(framing.encode, messages))
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter = FrameSplitter()
    payloads: list[bytes] = []
    for start, end in itertools.pairwise(edges):
        payloads += splitter.feed(stream[start:end])
    assert [framing.decode_event(payload) for payload in payloads] == messages
    assert splitter.num_held_bytes == 0
