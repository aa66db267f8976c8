"""Small files of a model folder, read with a limit; nothing but regular files is ever opened."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode

LFS_MARK = b"version https://git-lfs"
"""How a Git LFS pointer begins: the text that stands for a file that was not downloaded."""
LFS_REASON = "it is a Git LFS pointer of a few bytes, the download is not complete"


def shown(text: str) -> str:
    """Return ``text`` with everything replaced that cannot travel in a message."""
    return text.encode("utf-8", "replace").decode("utf-8")


def is_unicode(text: str) -> bool:
    """Whether ``text``, a path for example, can travel in a message as it is."""
    return shown(text) == text


def unreadable(path: Path, cause: Exception) -> LarderError:
    """Return the error for a file that exists and cannot be read."""
    reason = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
    return LarderError(ErrorCode.FILE_UNREADABLE, file=shown(str(path)), reason=shown(reason))


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a pipe or device is refused before it can block.

    Raises ``FileNotFoundError`` if there is none, ``LarderError`` for every other failure.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise unreadable(path, OSError(errno.EINVAL, "not a regular file"))
        return path.open("rb")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as cause:
        raise unreadable(path, cause) from cause


def read_small(path: Path, max_bytes: int) -> bytes:
    """Return a whole file of at most ``max_bytes``; fails like ``open_regular``."""
    with open_regular(path) as file:
        try:
            size_bytes = os.fstat(file.fileno()).st_size
            if size_bytes > max_bytes:
                cause = OSError(errno.EFBIG, f"{size_bytes} bytes, at most {max_bytes} allowed")
                raise unreadable(path, cause)
            return file.read(max_bytes)
        except OSError as cause:
            raise unreadable(path, cause) from cause


def read_start(path: Path, num_bytes: int) -> bytes:
    """Return the first bytes of a file, fewer if it is shorter; fails like ``open_regular``."""
    with open_regular(path) as file:
        try:
            return file.read(num_bytes)
        except OSError as cause:
            raise unreadable(path, cause) from cause


def is_file(path: Path) -> bool:
    """Whether ``path`` is something that can be opened as a file, links followed."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
