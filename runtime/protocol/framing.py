"""Frames: four bytes of little-endian length, then that many bytes of MessagePack.

The same code serves both sides. Everything that does not decode ends in ``FrameError``; after one
the stream cannot be trusted and the channel has to be closed.
"""

import struct
from collections.abc import Iterator

import msgspec

from runtime.protocol.messages import AnyCommand, AnyEvent
from runtime.protocol.version import MAX_FRAME_BYTES

_LENGTH = struct.Struct("<I")
LENGTH_BYTES = _LENGTH.size


class FrameError(Exception):
    """A frame that is too long, cut short, or does not hold a known message."""


def encode(message: AnyCommand | AnyEvent) -> bytes:
    """Return the whole frame of a message; raise ``FrameError`` if there can be none."""
    try:
        payload = msgspec.msgpack.encode(message)
    except UnicodeEncodeError as error:
        raise FrameError(f"{type(message).__name__} holds text that is not Unicode") from error
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameError(
            f"{type(message).__name__} takes {len(payload)} bytes, the limit is {MAX_FRAME_BYTES}"
        )
    return _LENGTH.pack(len(payload)) + payload


def payload_length(prefix: bytes) -> int:
    """Return the payload length of a frame's first four bytes; raise ``FrameError`` if refused."""
    if len(prefix) != LENGTH_BYTES:
        raise FrameError(f"the stream ended inside a length: {len(prefix)} of {LENGTH_BYTES} bytes")
    (length,) = _LENGTH.unpack(prefix)
    if not 0 < length <= MAX_FRAME_BYTES:
        raise FrameError(
            f"a frame of {length} bytes was announced, at most {MAX_FRAME_BYTES} are allowed"
        )
    return int(length)


_command_decoder = msgspec.msgpack.Decoder(AnyCommand)
_event_decoder = msgspec.msgpack.Decoder(AnyEvent)


def decode_command(payload: bytes | memoryview) -> AnyCommand:
    """Return the command in a payload; raise ``FrameError`` if there is none."""
    try:
        return _command_decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"not a command: {error}") from error


def decode_event(payload: bytes | memoryview) -> AnyEvent:
    """Return the event in a payload; raise ``FrameError`` if there is none."""
    try:
        return _event_decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"not an event: {error}") from error


class FrameSplitter:
    """Cuts a byte stream that arrives in arbitrary pieces into payloads.

    Threads: used by one thread, the owner of the stream. At most one incomplete frame is held.
    """

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield each payload completed by ``data``; raise ``FrameError`` on a refused length."""
        self._held += data
        while len(self._held) >= LENGTH_BYTES:
            length = payload_length(bytes(self._held[:LENGTH_BYTES]))
            end = LENGTH_BYTES + length
            if len(self._held) < end:
                return
            payload = bytes(self._held[LENGTH_BYTES:end])
            del self._held[:end]
            yield payload

    @property
    def num_held_bytes(self) -> int:
        """Bytes of the frame that is not complete yet."""
        return len(self._held)
