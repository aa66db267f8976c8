"""The beginning of a GGUF file on a hub, read as far as its header goes."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Self

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.hub.connection import BrokenConnectionError, HubConnection, RangeRefusedError
from runtime.inspect.gguf.header import MAX_HEADER_BYTES, GgufHeader, read_header_from
from runtime.protocol.errors import ErrorCode

MAX_TRIES = 3
_SMALL_BYTES = 1 << 17
_WANTED = "rope_f"
"""How the names of small tensors begin that say how angles turn; their data counts."""
_WRONG = frozenset({ErrorCode.SHARD_INVALID, ErrorCode.SHARD_TRUNCATED})


class RemoteStart:
    """Reads a file of a hub from its beginning on, one request for all; keeps what it read.

    A line that breaks is taken up again where it broke. Threads: one.
    """

    def __init__(
        self, hub: HubConnection, cancel: CancelToken, url: str, size_bytes: int, model_id: str
    ) -> None:
        self._hub = hub
        self._cancel = cancel
        self._url = url
        self._max_bytes = min(MAX_HEADER_BYTES, size_bytes)
        self._model_id = model_id
        self._chunks = self._fetch()
        self._at = 0
        self.data = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._chunks.close()

    def read(self, num_bytes: int) -> bytes:
        """Return the next bytes, fewer at the end of what may be read."""
        end = self._at + num_bytes
        while len(self.data) < end:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._cancel.check()
            self.data += chunk
        found = bytes(self.data[self._at : end])
        self._at += len(found)
        return found

    def seek(self, offset_bytes: int) -> None:
        """Go back to what was read before."""
        self._at = offset_bytes

    def _fetch(self) -> Generator[bytes]:
        num_failures = 0
        while (begun := len(self.data)) < self._max_bytes:
            try:
                with self._hub.stream(
                    self._url, begun, self._model_id, last=self._max_bytes - 1
                ) as chunks:
                    yield from chunks
                failure = BrokenConnectionError("it sends less than it says")
            except RangeRefusedError:
                return
            except BrokenConnectionError as broken:
                failure = broken
            num_failures = 1 if len(self.data) > begun else num_failures + 1
            if num_failures == MAX_TRIES:
                raise self._hub.unreachable(failure) from failure
            if self._cancel.wait(max(failure.wait_s, 0.2)):
                raise CancelledError from failure


def read_remote_start(start: RemoteStart, path: Path, size_bytes: int) -> GgufHeader | None:
    """Return the header of a file that is to lie under a path; None if it is none.

    What was read of it tells then what is wrong.
    """
    try:
        return read_header_from(path, start, size_bytes)
    except LarderError as error:
        if error.code not in _WRONG:
            raise
        return None


def small_parts(header: GgufHeader) -> Iterator[tuple[int, int]]:
    """Yield where small tensors lie whose data an inspection reads, and how long they are."""
    for name, tensor in header.tensors.items():
        if name.startswith(_WANTED) and tensor.num_bytes <= _SMALL_BYTES:
            yield tensor.offset_bytes, tensor.num_bytes
