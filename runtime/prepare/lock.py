"""A lock on a folder that ends with the process that holds it, however that process ends."""

import sys
from pathlib import Path
from types import TracebackType
from typing import Self

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = "larder-prepare.lock"


class FolderBusyError(Exception):
    """Another process, or another part of this one, holds the lock."""


class FolderLock:
    """Held from entering to leaving a ``with`` block; nobody waits for it.

    Raises ``FolderBusyError`` on entering while somebody else holds it, ``OSError`` if the lock
    file cannot be made.
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
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The file stays: removing it would let two others hold two files of the same name.
        self._file.close()
