"""Weight files, opened once and read at positions from any thread."""

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import open_regular, shown
from runtime.protocol.errors import ErrorCode

_HAS_POSITIONED_READS = hasattr(os, "preadv")


class WeightFiles:
    """The files of one store and a count of what was read from them.

    Threads: ``read`` may run in several threads at once; ``close`` must not run beside it.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._num_bytes_read = 0
        self._files: dict[str, _PositionedFile] = {}
        try:
            for path in paths:
                self._files[path] = _PositionedFile(path)
        except FileNotFoundError as cause:
            self.close()
            raise _read_failed(path, 0, "the file is not there any more") from cause
        except LarderError:
            self.close()
            raise

    @property
    def num_bytes_read(self) -> int:
        """Bytes that were read so far, gaps included."""
        return self._num_bytes_read

    def size_bytes(self, path: str) -> int:
        """Return how long a file is now."""
        return os.fstat(self._files[path].descriptor).st_size

    def read(self, path: str, offset_bytes: int, targets: Sequence[memoryview]) -> None:
        """Fill ``targets`` one after the other with what begins at ``offset_bytes``.

        Reads that come back short go on where they stopped; if nothing more comes, or the system
        reports an error, ``DRIVE_READ_FAILED`` names file and offset.
        """
        remaining = [target.cast("B") for target in targets if target.nbytes]
        file = self._files.get(path)
        if file is None:
            raise _read_failed(path, offset_bytes, "the store is closed")
        position = offset_bytes
        while remaining:
            try:
                count = file.read(position, remaining)
            except OSError as cause:
                reason = cause.strerror or str(cause)
                raise _read_failed(path, position, reason) from cause
            if count <= 0:
                raise _read_failed(path, position, "the file ends before the data")
            with self._lock:
                self._num_bytes_read += count
            position += count
            while remaining and count >= remaining[0].nbytes:
                count -= remaining.pop(0).nbytes
            if count:
                remaining[0] = remaining[0][count:]

    def close(self) -> None:
        """Close all files; may be called twice."""
        files, self._files = self._files, {}
        for file in files.values():
            file.close()


class _PositionedFile:
    """One open file; where reads have no position, a lock keeps seek and read together."""

    def __init__(self, path: str) -> None:
        self._file = open_regular(Path(path))
        self._lock = threading.Lock()
        self.descriptor = self._file.fileno()

    def read(self, offset_bytes: int, targets: Sequence[memoryview]) -> int:
        """Read once into ``targets``, perhaps less than they take; return the bytes read."""
        if _HAS_POSITIONED_READS:
            return os.preadv(self.descriptor, targets, offset_bytes)
        with self._lock:
            self._file.seek(offset_bytes)
            return self._file.readinto(targets[0])

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _read_failed(path: str, offset_bytes: int, reason: str) -> LarderError:
    return LarderError(
        ErrorCode.DRIVE_READ_FAILED,
        file=shown(path),
        offset_bytes=offset_bytes,
        reason=reason,
    )
