"""A lock on a folder that ends with the process that holds it, however that process ends."""

import contextlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = "larder-prepare.lock"
_WORK_NAMES = (JOURNAL_NAME, MANIFEST_NAME)


class FolderBusyError(Exception):
    """Another process, or another part of this one, holds the lock."""


class FolderLock:
    """Held from entering to leaving a ``with`` block; nobody waits for it.

    Raises ``FolderBusyError`` on entering while somebody else holds it, ``OSError`` if the lock
    file cannot be made. Where no copy lies and none was begun, it leaves nothing behind.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME

    def __enter__(self) -> Self:
        self._file = self._path.open("ab")
        try:
            if sys.platform == "win32":
                msvcrt.locking(self._file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            self._file.close()
            raise FolderBusyError(str(self._path)) from cause
        if not self._is_named():
            # Its last holder removed it between our opening and our locking of it.
            self._file.close()
            raise FolderBusyError(str(self._path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # With work that is kept, the file stays.
        is_idle = not any((self._path.parent / name).exists() for name in _WORK_NAMES)
        if is_idle and sys.platform != "win32":
            self._path.unlink()
        self._file.close()
        if is_idle and sys.platform == "win32":
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _is_named(self) -> bool:
        """Whether the file that is locked is still the one that others find."""
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._file.fileno()))
