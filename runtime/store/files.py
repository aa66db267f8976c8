"""Weight files, opened once and read at positions from any thread, past the cache if possible."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import open_regular, shown
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import PAGE_BYTES
from runtime.store.bounce import BouncePool, pieces_of, scatter
from runtime.store.direct import DirectFile, is_paged, open_direct
from runtime.store.refusal import DirectRefusedError

_LOG = logging.getLogger(__name__)
_HAS_POSITIONED_READS = hasattr(os, "preadv")
_HAS_ADVICE = hasattr(os, "posix_fadvise")

_Read = Callable[[int, Sequence[memoryview]], int]
"""Reads once from an offset, perhaps less than the targets take; returns the bytes read."""


class WeightFiles:
    """The files of one store and a count of what was read from them.

    A file is read directly where that is possible: straight into targets that are whole pages,
    else through a room of whole pages. Where it is not, the system is told after each read that
    what it kept is not needed. A read that fails is tried once more with the file opened anew: what
    was opened before a drive went away is lost for ever, also when the drive is there again.

    Threads: ``read`` may run in several threads at once; ``close`` must not run beside it.
    """

    def __init__(self, paths: Iterable[str], *, prefers_direct: bool = True) -> None:
        self._lock = threading.Lock()
        self._num_bytes_read = 0
        self._rooms = BouncePool()
        self._files: dict[str, _WeightFile] = {}
        try:
            for path in paths:
                self._files[path] = _WeightFile(path, prefers_direct=prefers_direct)
        except FileNotFoundError as cause:
            self.close()
            raise _read_failed(path, 0, "the file is not there any more") from cause
        except LarderError:
            self.close()
            raise

    @property
    def num_bytes_read(self) -> int:
        """Bytes that were read so far, gaps and padding included."""
        return self._num_bytes_read

    @property
    def is_direct(self) -> bool:
        """Whether every file is read past the cache; false without files and after ``close``."""
        return bool(self._files) and all(file.direct for file in self._files.values())

    def size_bytes(self, path: str) -> int:
        """Return how long a file is now."""
        return os.fstat(self._files[path].descriptor).st_size

    def read(self, path: str, offset_bytes: int, targets: Sequence[memoryview]) -> None:
        """Fill ``targets`` one after the other with what begins at ``offset_bytes``.

        Reads that come back short go on where they stopped; if nothing more comes, or the system
        reports an error, ``DRIVE_READ_FAILED`` names file and offset.
        """
        places = [target.cast("B") for target in targets if target.nbytes]
        file = self._files.get(path)
        if file is None:
            raise _read_failed(path, offset_bytes, "the store is closed")
        try:
            self._read_of(file, path, offset_bytes, places)
        except LarderError:
            if not file.open_anew():
                raise
            _LOG.info("%s failed at byte %d and is opened anew", path, offset_bytes)
            self._read_of(file, path, offset_bytes, places)

    def _read_of(
        self, file: "_WeightFile", path: str, offset_bytes: int, places: list[memoryview]
    ) -> None:
        """Read from an open file, past the cache if that is possible."""
        direct = file.direct
        if direct is not None:
            try:
                if not direct.needs_pages:
                    self._fill(path, direct.read, offset_bytes, places)
                elif is_paged(offset_bytes, places):
                    self._fill(path, direct.read, offset_bytes, places, unit_bytes=PAGE_BYTES)
                else:
                    self._read_in_pages(path, direct.read, offset_bytes, places)
            except DirectRefusedError as refused:
                file.direct = None
                _LOG.info("%s is read through the cache: %s", path, refused)
            else:
                return
        self._fill(path, file.read, offset_bytes, places)
        file.forget(offset_bytes, sum(place.nbytes for place in places))

    @contextmanager
    def lent(self, path: str, offset_bytes: int, num_bytes: int) -> Iterator[memoryview]:
        """Read a range of at most ``MOST_LENT_BYTES`` and lend the bytes where they came to lie.

        Raises as ``read`` does.
        """
        begin = offset_bytes // PAGE_BYTES * PAGE_BYTES
        end = -(-(offset_bytes + num_bytes) // PAGE_BYTES) * PAGE_BYTES
        if path in self._files:
            # Of the last page there may be a part only.
            end = max(min(end, self.size_bytes(path)), offset_bytes + num_bytes)
        with self._rooms.room() as room:
            self.read(path, begin, [room[: end - begin]])
            yield room[offset_bytes - begin : offset_bytes - begin + num_bytes]

    def pieces(
        self, path: str, offset_bytes: int, num_bytes: int, room: memoryview
    ) -> Iterator[memoryview]:
        """Read a range in pieces that fill ``room``; yield each, valid until the next."""
        room = room.cast("B")
        for start in range(0, num_bytes, room.nbytes):
            piece = room[: min(room.nbytes, num_bytes - start)]
            self.read(path, offset_bytes + start, [piece])
            yield piece

    def close(self) -> None:
        """Close all files; may be called twice."""
        files, self._files = self._files, {}
        for file in files.values():
            file.close()

    def _read_in_pages(
        self, path: str, read: _Read, offset_bytes: int, places: Sequence[memoryview]
    ) -> None:
        """Read the pages around a range, and copy what is wanted of them to its places."""
        end = offset_bytes + sum(place.nbytes for place in places)
        remaining = list(places)
        with self._rooms.room() as room:
            for start, num_bytes in pieces_of(offset_bytes, end - offset_bytes):
                wanted_end = min(start + num_bytes, end)
                self._fill(
                    path,
                    read,
                    start,
                    [room[:num_bytes]],
                    least_bytes=wanted_end - start,
                    unit_bytes=PAGE_BYTES,
                )
                first = max(start, offset_bytes)
                remaining = scatter(room[first - start : wanted_end - start], remaining)

    def _fill(
        self,
        path: str,
        read: _Read,
        position: int,
        places: Sequence[memoryview],
        *,
        least_bytes: int | None = None,
        unit_bytes: int = 1,
    ) -> None:
        """Read until the places are full, or where the file ends, at least ``least_bytes``.

        A read that is no multiple of ``unit_bytes`` met the end of the file.
        """
        remaining = list(places)
        missing = sum(place.nbytes for place in places) if least_bytes is None else least_bytes
        is_at_end = False
        while missing > 0:
            try:
                count = 0 if is_at_end else read(position, remaining)
            except OSError as cause:
                reason = cause.strerror or str(cause)
                raise _read_failed(path, position, reason) from cause
            if count <= 0:
                raise _read_failed(path, position, "the file ends before the data")
            with self._lock:
                self._num_bytes_read += count
            position += count
            missing -= count
            is_at_end = count % unit_bytes != 0
            remaining = _after(remaining, count)


class _WeightFile:
    """One open file; where reads have no position, a lock keeps seek and read together."""

    def __init__(self, path: str, *, prefers_direct: bool) -> None:
        self._path = path
        self._file = open_regular(Path(path))
        self._lock = threading.Lock()
        self.descriptor = self._file.fileno()
        self.direct = open_direct(path, self.descriptor) if prefers_direct else None
        self.likeness = _likeness(self.descriptor)
        """What a file has to have in common with this one to be the same, opened anew."""

    def read(self, offset_bytes: int, places: Sequence[memoryview]) -> int:
        """Read once through the cache, perhaps less than the places take; return the bytes."""
        if _HAS_POSITIONED_READS:
            return os.preadv(self.descriptor, places, offset_bytes)
        with self._lock:
            self._file.seek(offset_bytes)
            return self._file.readinto(places[0])

    def forget(self, offset_bytes: int, num_bytes: int) -> None:
        """Tell the system that it need not keep a range in its cache."""
        if _HAS_ADVICE:
            os.posix_fadvise(self.descriptor, offset_bytes, num_bytes, os.POSIX_FADV_DONTNEED)

    def open_anew(self) -> bool:
        """Open the file again under the descriptors it has.

        False where it is not there, or is another one. Reads in other threads go on: a descriptor
        changes what it stands for in one step.
        """
        if not _HAS_POSITIONED_READS:
            return False
        with self._lock:
            try:
                fresh = _WeightFile(self._path, prefers_direct=self.direct is not None)
            except (OSError, LarderError):
                return False
            is_same = fresh.takes_place_of(self)
            fresh.close()
            return is_same

    def takes_place_of(self, other: "_WeightFile") -> bool:
        """Give the other file what this one opened; False where it is another file by now."""
        if self.likeness != other.likeness or (self.direct is None) != (other.direct is None):
            return False
        os.dup2(self.descriptor, other.descriptor, inheritable=False)
        if isinstance(other.direct, DirectFile) and isinstance(self.direct, DirectFile):
            other.direct.follow(self.direct)
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self.direct is not None:
            self.direct.close()


def _likeness(descriptor: int) -> tuple[int, int]:
    """Size and time of change of an open file."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def _after(places: Sequence[memoryview], count: int) -> list[memoryview]:
    """Return what of the places is empty when their first bytes are filled."""
    remaining = list(places)
    while remaining and count >= remaining[0].nbytes:
        count -= remaining.pop(0).nbytes
    if count:
        remaining[0] = remaining[0][count:]
    return remaining


def _read_failed(path: str, offset_bytes: int, reason: str) -> LarderError:
    return LarderError(
        ErrorCode.DRIVE_READ_FAILED,
        file=shown(path),
        offset_bytes=offset_bytes,
        reason=reason,
    )
