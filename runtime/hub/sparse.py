"""Files that are longer than what is written of them, taking no room for the rest."""

import os
import sys
from pathlib import Path

_SET_SPARSE = 0x000900C4
_BLOCK_BYTES = 512


def write_sparse(path: Path, start: bytes, size_bytes: int) -> bool:
    """Write a file that begins with ``start`` and reads as zeros from there on.

    Returns False, and leaves no file, where the file system would fill it up or has no room for
    such a length. Raises ``OSError`` for other failures.
    """
    try:
        with path.open("wb") as file:
            file.write(start)
            file.flush()
            is_sparse = _can_be_sparse(file.fileno(), len(start))
            file.truncate(size_bytes if is_sparse else 0)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    if not is_sparse:
        path.unlink()
    return is_sparse


if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    def _can_be_sparse(descriptor: int, _num_written: int) -> bool:
        """Whether a new file could be marked as sparse; unmarked, its length would be reserved."""
        returned = wintypes.DWORD()
        handle = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))
        nothing = (None, 0, None, 0)
        control = ctypes.windll.kernel32.DeviceIoControl
        return bool(control(handle, _SET_SPARSE, *nothing, ctypes.byref(returned), None))

else:

    def _can_be_sparse(descriptor: int, num_written: int) -> bool:
        """Whether lengthening a file takes no room here, tried with one mebibyte."""
        os.ftruncate(descriptor, num_written + (1 << 20))
        os.fsync(descriptor)
        num_bytes = os.fstat(descriptor).st_blocks * _BLOCK_BYTES
        return num_bytes < num_written + (1 << 19)
