"""Requests to one hub over HTTP, every failure of which is one of three kinds."""

import contextlib
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Self

import httpx2
import msgspec

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.hub.address import shown_host
from runtime.hub.leash import Leash
from runtime.hub.repo import Repo
from runtime.protocol.errors import ErrorCode

STALL_S = 15.0
"""A connection on which nothing comes for so long counts as broken."""
MAX_ANSWER_BYTES = 32_000_000
MAX_REDIRECTS = 5
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class BrokenConnectionError(Exception):
    """A failure that may be gone a moment later; ``wait_s`` is what the hub asks to wait."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s


class RangeRefusedError(Exception):
    """The hub has nothing from this position on (status 416)."""


class HubConnection:
    """One hub, for one question or download.

    A wish to stop ends what comes in at once. Threads: any thread may call any method until
    ``close``.
    """

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        cancel: CancelToken,
        stall_s: float = STALL_S,
    ) -> None:
        self.address = address
        self._cancel = cancel
        self._leash = Leash(cancel)
        self.host = shown_host(address)
        self._client = httpx2.Client(
            headers=dict(headers),
            timeout=httpx2.Timeout(stall_s, connect=stall_s),
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._leash.close()
        self._client.close()

    def unreachable(self, broken: BrokenConnectionError) -> LarderError:
        """Return the error of a failure that did not go away."""
        return LarderError(ErrorCode.HUB_UNREACHABLE, host=self.host, reason=broken.reason)

    def invalid(self, reason: str) -> LarderError:
        """Return the error for an answer that cannot be used."""
        return LarderError(ErrorCode.HUB_ANSWER_INVALID, host=self.host, reason=reason)

    def file_url(self, repo: Repo, name: str) -> str:
        """Return the address of one file of a model at its commit."""
        return f"{self.address}/{repo.model_id}/resolve/{repo.revision}/{urllib.parse.quote(name)}"

    def ask(self, path: str, query: Mapping[str, str | list[str]], model_id: str = "") -> object:
        """Return the JSON below an address of the hub's interface.

        Raises ``LarderError``; ``model_id`` is for its sentence.
        """
        url = f"{self.address}/api/{path}?{urllib.parse.urlencode(query, doseq=True)}"
        try:
            data = self.read_all(url, MAX_ANSWER_BYTES, model_id)
        except BrokenConnectionError as broken:
            raise self.unreachable(broken) from broken
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
            raise self.invalid(f"it is not JSON ({cause})") from cause

    def read_all(self, url: str, max_bytes: int, model_id: str) -> bytes:
        """Return a whole answer of at most ``max_bytes``; fails like ``stream``."""
        data = bytearray()
        with self.stream(url, 0, model_id) as chunks:
            for chunk in chunks:
                data += chunk
                if len(data) > max_bytes:
                    raise self.invalid(f"it is longer than {max_bytes} bytes")
        return bytes(data)

    def read_range(self, url: str, start: int, num_bytes: int, model_id: str) -> bytes:
        """Return bytes of a file, fewer if it is shorter; fails like ``stream``."""
        data = bytearray()
        with self.stream(url, start, model_id, last=start + num_bytes - 1) as chunks:
            for chunk in chunks:
                data += chunk
                if len(data) >= num_bytes:
                    break
        return bytes(data[:num_bytes])

    @contextlib.contextmanager
    def stream(
        self,
        url: str,
        start: int,
        model_id: str,
        *,
        last: int | None = None,
        size_bytes: int | None = None,
    ) -> Iterator[Iterator[bytes]]:
        """Give the bytes of a file from a position on, up to the ``last`` if that is named.

        A file that says to have another size than ``size_bytes`` is refused. A hub that ignores the
        position has its first bytes passed over. Raises ``BrokenConnectionError``, also while the
        bytes are taken, ``RangeRefusedError``, ``CancelledError``, or ``LarderError`` for what
        trying again would not change.
        """
        headers = {}
        if start or last is not None:
            headers["Range"] = f"bytes={start}-{'' if last is None else last}"
        try:
            with (
                self._client.stream("GET", url, headers=headers) as answer,
                self._leash.hold(answer),
            ):
                yield self._bytes_of(answer, start, model_id, size_bytes)
        except httpx2.HTTPError as cause:
            self._cancel.check()
            raise self._told(cause) from cause

    def _told(self, cause: httpx2.HTTPError) -> Exception:
        if isinstance(cause, httpx2.TooManyRedirects | httpx2.UnsupportedProtocol):
            return self.invalid(f"it sends on to nowhere ({cause})")
        if isinstance(cause, httpx2.TimeoutException):
            return BrokenConnectionError("nothing came for too long")
        return BrokenConnectionError(str(cause) or type(cause).__name__)

    def _bytes_of(
        self, answer: httpx2.Response, start: int, model_id: str, size_bytes: int | None
    ) -> Iterator[bytes]:
        status = answer.status_code
        if status == 416:
            raise RangeRefusedError
        if status in _BUSY:
            raise BrokenConnectionError(f"it is busy (status {status})", _wait_of(answer))
        if status in (401, 403):
            code = ErrorCode.HUB_MODEL_GATED
            if answer.headers.get("x-error-code") == "RepoNotFound":
                code = ErrorCode.HUB_MODEL_MISSING
            raise LarderError(code, host=self.host, model=model_id or self.host)
        if status == 404:
            raise LarderError(
                ErrorCode.HUB_MODEL_MISSING, host=self.host, model=model_id or "such list"
            )
        if status not in (200, 206):
            raise self.invalid(f"its status is {status}")
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise self.invalid("it is packed although that was not asked for")
        passed_over = 0
        if status == 206:
            match = _RANGE.fullmatch(answer.headers.get("content-range", ""))
            if match is None or int(match[1]) != start:
                raise self.invalid("it begins at another byte than asked for")
            stated = match[3]
        else:
            passed_over = start
            stated = answer.headers.get("content-length", "")
        if size_bytes is not None and stated not in ("", str(size_bytes)):
            raise self.invalid(f"it is {stated} bytes long and not {size_bytes}")
        return _after(answer.iter_raw(), passed_over)


def _after(chunks: Iterator[bytes], passed_over: int) -> Iterator[bytes]:
    """Yield what comes behind the first bytes."""
    for chunk in chunks:
        taken = chunk[passed_over:]
        passed_over = max(passed_over - len(chunk), 0)
        if taken:
            yield taken


def _wait_of(answer: httpx2.Response) -> float:
    """Return how many seconds the hub asks to wait, at most a minute."""
    text = answer.headers.get("retry-after", "")
    return min(float(text), 60.0) if text.isdecimal() else 0.0
