"""Writing that survives a power cut: whole under a temporary name, synced, then renamed."""

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.protocol.errors import ErrorCode

PART_ENDING = ".part"
"""What files are called until they are whole; of a copy, left behind only by a killed process."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG})


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BufferedRandom]:
    """Give a file to write; when the block ends well, it lies under ``path`` and is on the drive.

    When the block raises, nothing is left of it and what lay under ``path`` is as it was.
    """
    part = path.with_name(path.name + PART_ENDING)
    try:
        with part.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new, renamed and removed names of ``folder`` lasting."""
    if sys.platform == "win32":
        return  # the file system does it with the file's own sync
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_bytes(folder: Path) -> int:
    """Return what can still be written where ``folder`` lies or will lie."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def disk_error(
    folder: Path,
    cause: OSError,
    needed_bytes: int,
    kept_bytes: int,
    otherwise: ErrorCode = ErrorCode.COPY_WRITE_FAILED,
) -> LarderError:
    """Return what a failed write to ``folder`` means for a person.

    ``otherwise`` is the code where the drive is neither full nor closed to writing.
    """
    reason = cause.strerror or str(cause)
    name = shown(str(folder))
    if cause.errno in _FULL:
        free = 0
        with contextlib.suppress(OSError):
            free = free_bytes(folder)
        return LarderError(
            ErrorCode.DISK_FULL,
            detail=f"{kept_bytes} bytes are written and will be used again",
            folder=name,
            needed_bytes=needed_bytes,
            free_bytes=free,
        )
    code = ErrorCode.DISK_NOT_WRITABLE if cause.errno in _READ_ONLY else otherwise
    return LarderError(code, folder=name, reason=reason)
