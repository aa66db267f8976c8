"""Small files of a model folder, read with a limit; nothing but regular files is ever opened."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode

_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
"""A pipe that takes a file's place between the look and the opening does not block."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
CIRCLE = "it is a link that leads back to itself"


def shown(text: str) -> str:
    """Return ``text`` with everything replaced that cannot travel in a message."""
    return text.encode("utf-8", "replace").decode("utf-8")


def is_unicode(text: str) -> bool:
    """Whether ``text``, a path for example, can travel in a message as it is."""
    return shown(text) == text


def unreadable(path: Path, cause: Exception) -> LarderError:
    """Return the error for a file that exists and cannot be read."""
    if isinstance(cause, OSError) and cause.errno == errno.ELOOP:
        return unusable(path, CIRCLE)
    if isinstance(cause, OSError) and cause.errno == errno.ENAMETOOLONG:
        reason = "its path is too long for this system, so move the folder to a shorter one"
    else:
        reason = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
    return LarderError(ErrorCode.FILE_UNREADABLE, file=shown(str(path)), reason=shown(reason))


def unusable(path: Path, reason: str) -> LarderError:
    """Return the error for a file that can be read and is not what it should be."""
    return LarderError(ErrorCode.FILE_INVALID, file=shown(str(path)), reason=shown(reason))


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a pipe or device is refused before it can block.

    Raises ``FileNotFoundError`` if there is none, ``LarderError`` for every other failure.
    """
    try:
        _require_regular(path, path.stat().st_mode)
        file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as cause:
        raise unreadable(path, cause) from cause
    try:
        _require_regular(path, os.fstat(file.fileno()).st_mode)
    except LarderError:
        file.close()
        raise
    return file


def read_small(path: Path, max_bytes: int) -> bytes:
    """Return a whole file of at most ``max_bytes``; fails like ``open_regular``."""
    with open_regular(path) as file:
        try:
            size_bytes = os.fstat(file.fileno()).st_size
            if size_bytes > max_bytes:
                raise unusable(path, f"it has {size_bytes} bytes, at most {max_bytes} are read")
            # Room is made for all that is asked for, however little there is.
            data = file.read(min(size_bytes + 1, max_bytes))
            if len(data) > size_bytes:
                data += file.read(max_bytes - len(data))
            return data
        except OSError as cause:
            raise unreadable(path, cause) from cause


def read_start(path: Path, num_bytes: int) -> bytes:
    """Return the first bytes of a file, fewer if it is shorter; fails like ``open_regular``."""
    return read_range(path, 0, num_bytes)


def read_range(path: Path, offset_bytes: int, num_bytes: int) -> bytes:
    """Return the bytes from an offset on, fewer if the file ends; fails like ``open_regular``."""
    with open_regular(path) as file:
        try:
            file.seek(offset_bytes)
            return file.read(num_bytes)
        except OSError as cause:
            raise unreadable(path, cause) from cause


def is_file(path: Path) -> bool:
    """Whether ``path`` is something that can be opened as a file, links followed."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _require_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise unusable(path, f"it is {kind} and not a file")
