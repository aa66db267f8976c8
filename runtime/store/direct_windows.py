"""Windows' way to read a file past the system's cache."""

import ctypes
import sys
from collections.abc import Sequence
from ctypes import wintypes
from typing import Self

from runtime.store.refusal import DirectRefusedError

_GENERIC_READ = 0x80000000
_SHARE_ALL = 0x1 | 0x2 | 0x4
_OPEN_EXISTING = 3
_NO_BUFFERING = 0x20000000
_RANDOM_ACCESS = 0x10000000
_END_OF_FILE = 38
_INVALID_PARAMETER = 87
_MAX_READ_BYTES = 64 * 1024 * 1024

if sys.platform == "win32":

    class _Overlapped(ctypes.Structure):
        """Where a read begins; its first two fields and the event stay zero."""

        _fields_ = (
            ("internal", ctypes.c_void_p),
            ("internal_high", ctypes.c_void_p),
            ("offset", wintypes.DWORD),
            ("offset_high", wintypes.DWORD),
            ("event", wintypes.HANDLE),
        )

    def _library() -> ctypes.WinDLL:
        library = ctypes.WinDLL("kernel32", use_last_error=True)
        library.CreateFileW.restype = wintypes.HANDLE
        library.CreateFileW.argtypes = (
            wintypes.LPCWSTR,
            wintypes.DWORD,
            wintypes.DWORD,
            ctypes.c_void_p,
            wintypes.DWORD,
            wintypes.DWORD,
            wintypes.HANDLE,
        )
        library.ReadFile.argtypes = (
            wintypes.HANDLE,
            ctypes.c_void_p,
            wintypes.DWORD,
            ctypes.POINTER(wintypes.DWORD),
            ctypes.POINTER(_Overlapped),
        )
        library.CloseHandle.argtypes = (wintypes.HANDLE,)
        return library

    class WindowsDirectFile:
        """One file opened without buffering.

        Threads: ``read`` may run in several at once; the system does reads of a handle in turn.
        """

        needs_pages = True

        def __init__(self, library: ctypes.WinDLL, handle: int) -> None:
            self._library = library
            self._handle = handle

        @classmethod
        def open(cls, path: str) -> Self | None:
            """Return a file opened without buffering, None where that is refused."""
            library = _library()
            flags = _NO_BUFFERING | _RANDOM_ACCESS
            handle = library.CreateFileW(
                path, _GENERIC_READ, _SHARE_ALL, None, _OPEN_EXISTING, flags, None
            )
            is_open = handle not in {None, wintypes.HANDLE(-1).value}
            return cls(library, handle) if is_open else None

        def read(self, offset_bytes: int, targets: Sequence[memoryview]) -> int:
            """Read once into the first target, perhaps not all of it; return the bytes read."""
            target = targets[0]
            place = _Overlapped(offset=offset_bytes & 0xFFFFFFFF, offset_high=offset_bytes >> 32)
            count = wintypes.DWORD()
            is_read = self._library.ReadFile(
                self._handle,
                ctypes.addressof(ctypes.c_char.from_buffer(target)),
                min(target.nbytes, _MAX_READ_BYTES),
                ctypes.byref(count),
                ctypes.byref(place),
            )
            error = 0 if is_read else ctypes.get_last_error()
            if error == _INVALID_PARAMETER:
                raise DirectRefusedError(f"error {error}")
            if error not in {0, _END_OF_FILE}:
                raise ctypes.WinError(error)
            return int(count.value)

        def close(self) -> None:
            """Close the file."""
            self._library.CloseHandle(self._handle)
