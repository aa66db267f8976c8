"""Files read past the system's cache, straight into memory, where system and drive allow it.

Weights are read by position, seldom twice in a row, and what the cache kept of them would only
drive out what other programs need. Positions, sizes and addresses have to be whole pages, except on
macOS.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from runtime.hardware.drives import drive_of
from runtime.spec.tensors import PAGE_BYTES
from runtime.store.refusal import DirectRefusedError

_REFUSALS = frozenset({errno.EINVAL, errno.EOPNOTSUPP})
"""Errors with which a file system that let a file be opened so refuses to read it."""
_MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs"})
"""They take the wish and read from memory all the same, so no drive is spared."""


class DirectFile:
    """One file opened past the cache.

    Threads: ``read`` may run in several at once.
    """

    def __init__(self, descriptor: int, *, needs_pages: bool) -> None:
        self.descriptor = descriptor
        self.needs_pages = needs_pages
        """Whether position, sizes and addresses must be whole pages."""

    def read(self, offset_bytes: int, targets: Sequence[memoryview]) -> int:
        """Read once into ``targets``, perhaps less than they take; return the bytes read."""
        try:
            return os.preadv(self.descriptor, targets, offset_bytes)
        except OSError as cause:
            if cause.errno in _REFUSALS:
                raise DirectRefusedError(cause.strerror) from cause
            raise

    def follow(self, other: "DirectFile") -> None:
        """Stand from now on for what the other one opened; reads in other threads go on."""
        os.dup2(other.descriptor, self.descriptor, inheritable=False)

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)


def lies_in_memory(path: str) -> bool:
    """Whether a file lies on no drive at all."""
    drive = drive_of(Path(path).parent)
    return drive is not None and drive.file_system in _MEMORY_FILE_SYSTEMS


def is_paged(offset_bytes: int, targets: Sequence[memoryview]) -> bool:
    """Whether a read can go straight into its targets."""
    return offset_bytes % PAGE_BYTES == 0 and all(
        target.nbytes % PAGE_BYTES == 0 and address_of(target) % PAGE_BYTES == 0
        for target in targets
    )


def address_of(target: memoryview) -> int:
    """Return where writable bytes lie in memory."""
    return ctypes.addressof(ctypes.c_char.from_buffer(target))


def open_direct(path: str, plain: int) -> "AnyDirectFile | None":
    """Return a file opened past the cache, None where that is refused.

    ``plain`` is the descriptor under which the same file is open already.
    """
    if lies_in_memory(path):
        return None
    if sys.platform == "win32":
        return WindowsDirectFile.open(path)
    flag = getattr(os, "O_DIRECT", 0)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flag)
    except OSError:
        return None
    try:
        is_direct = os.path.sameopenfile(descriptor, plain) and bool(flag or _no_cache(descriptor))
    except OSError:
        is_direct = False
    if not is_direct:
        os.close(descriptor)
        return None
    return DirectFile(descriptor, needs_pages=bool(flag))


if sys.platform == "darwin":
    import fcntl

    def _no_cache(descriptor: int) -> bool:
        """Ask the system not to keep what is read from a file."""
        fcntl.fcntl(descriptor, fcntl.F_NOCACHE, 1)
        return True

else:

    def _no_cache(descriptor: int) -> bool:  # noqa: ARG001
        """Say that the system has no such wish."""
        return False


if sys.platform == "win32":
    from runtime.store.direct_windows import WindowsDirectFile

    AnyDirectFile = DirectFile | WindowsDirectFile
else:
    AnyDirectFile = DirectFile
