"""One file from the hub to the drive: resumed, verified, and only then under its name."""

import dataclasses
import hashlib
import os
from collections.abc import Callable
from io import BufferedRandom
from pathlib import Path
from typing import Protocol

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.hub.connection import BrokenConnectionError, HubConnection, RangeRefusedError
from runtime.hub.repo import RepoFile
from runtime.prepare.disk import PART_ENDING
from runtime.protocol.errors import ErrorCode

MAX_RETRIES = 6
"""Failures in a row without a new byte before a person is told."""
MAX_PAUSE_S = 16.0
_CHUNK_BYTES = 1 << 20


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Carrier:
    """What carries files: the hub, the wish to stop, who is told, how long a pause is."""

    hub: HubConnection
    cancel: CancelToken
    arrived: Callable[[int], None]
    """Called with how many bytes more are there; fewer, if some were thrown away."""
    retrying: Callable[[int], None]
    """Called with the failures in a row, 0 once bytes come again."""
    first_pause_s: float = 1.0


def fetch_file(carrier: Carrier, file: RepoFile, url: str, folder: Path, model_id: str) -> None:
    """Bring one file into a folder, going on with what is there.

    Raises ``CancelledError``, ``LarderError``, or ``OSError`` of the drive; what is there stays.
    """
    path = folder / file.name
    if path.is_file():
        if path.stat().st_size == file.size_bytes:
            carrier.arrived(file.size_bytes)
            return
        path.unlink()
    part = folder / (file.name + PART_ENDING)
    for is_last in (False, True):
        with part.open("ab+") as out:
            digest = _gather(carrier, file, url, out, model_id)
            out.flush()
            os.fsync(out.fileno())
        if digest == (file.sha256 or file.git_sha1 or digest):
            part.replace(path)
            return
        part.unlink()
        carrier.arrived(-file.size_bytes)
        if is_last:
            raise LarderError(ErrorCode.DOWNLOAD_MISMATCHED, file=file.name, host=carrier.hub.host)


def _gather(carrier: Carrier, file: RepoFile, url: str, out: BufferedRandom, model_id: str) -> str:
    """Write what is missing of a file; return the hash of the whole."""
    digest = _new_hash(file)
    position = _read_kept(carrier, file, out, digest)
    num_failures = 0
    while position < file.size_bytes:
        begun = position
        try:
            with carrier.hub.stream(url, position, model_id, size_bytes=file.size_bytes) as chunks:
                for chunk in chunks:
                    if position + len(chunk) > file.size_bytes:
                        raise carrier.hub.invalid(f"{file.name} is longer than it says")
                    out.write(chunk)
                    digest.update(chunk)
                    position += len(chunk)
                    if num_failures:
                        num_failures = 0
                        carrier.retrying(0)
                    carrier.arrived(len(chunk))
                    carrier.cancel.check()
            if position == begun:
                raise BrokenConnectionError("it sends nothing")
            continue
        except RangeRefusedError:
            # What is there is longer than the hub's file, or of another one: begin anew.
            carrier.arrived(-position)
            out.truncate(0)
            digest, position = _new_hash(file), 0
            failure = BrokenConnectionError("it has no such part of the file (status 416)")
        except BrokenConnectionError as broken:
            failure = broken
            if position > begun:
                num_failures = 0
        num_failures += 1
        if num_failures > MAX_RETRIES:
            raise carrier.hub.unreachable(failure) from failure
        carrier.retrying(num_failures)
        pause_s = min(carrier.first_pause_s * 2 ** (num_failures - 1), MAX_PAUSE_S)
        if carrier.cancel.wait(max(pause_s, failure.wait_s)):
            raise CancelledError
    return digest.hexdigest()


def _read_kept(carrier: Carrier, file: RepoFile, out: BufferedRandom, digest: _Hash) -> int:
    """Hash what is there already; return how much that is."""
    kept = out.seek(0, os.SEEK_END)
    if kept > file.size_bytes:
        out.truncate(0)
        return 0
    out.seek(0)
    while data := out.read(_CHUNK_BYTES):
        carrier.cancel.check()
        digest.update(data)
        carrier.arrived(len(data))
    return kept


def _new_hash(file: RepoFile) -> _Hash:
    if file.sha256 or not file.git_sha1:
        return hashlib.sha256()
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % file.size_bytes)
    return digest
