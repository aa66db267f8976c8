"""A Windows job that ends its processes when the window's process ends, however it ends.

On other systems the runtime itself takes care of leaving with its parent, and nothing is done here.
"""

import ctypes
import sys

_EXTENDED_LIMIT_INFORMATION = 9
_KILL_ON_JOB_CLOSE = 0x2000
_SET_QUOTA_AND_TERMINATE = 0x0100 | 0x0001


class _BasicLimits(ctypes.Structure):
    """``JOBOBJECT_BASIC_LIMIT_INFORMATION``."""

    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class _IoCounters(ctypes.Structure):
    """``IO_COUNTERS``."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("ReadOps", "WriteOps", "OtherOps", "ReadBytes", "WriteBytes", "OtherBytes")
    )


class _ExtendedLimits(ctypes.Structure):
    """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", _IoCounters),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class KillOnCloseJob:
    """Holds the one handle of a job; the system closes it, and so ends the job, with this process.

    A job that cannot be made (inside a job that forbids it) is no error: the runtime still leaves
    when its pipe closes. Threads: window thread.
    """

    def __init__(self) -> None:
        self._handle = 0
        if sys.platform == "win32":
            self._handle = _make_job()

    def add(self, process_id: int) -> bool:
        """Put a process into the job; return whether that worked."""
        if sys.platform == "win32" and self._handle:
            return _assign(self._handle, process_id)
        return False


if sys.platform == "win32":
    from ctypes import wintypes

    def _kernel32() -> ctypes.WinDLL:
        """The library with argument types set, so that handles keep all their bits."""
        library = ctypes.WinDLL("kernel32", use_last_error=True)
        library.CreateJobObjectW.argtypes = (wintypes.LPVOID, wintypes.LPCWSTR)
        library.CreateJobObjectW.restype = wintypes.HANDLE
        library.SetInformationJobObject.argtypes = (
            wintypes.HANDLE,
            ctypes.c_int,
            wintypes.LPVOID,
            wintypes.DWORD,
        )
        library.SetInformationJobObject.restype = wintypes.BOOL
        library.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
        library.OpenProcess.restype = wintypes.HANDLE
        library.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
        library.AssignProcessToJobObject.restype = wintypes.BOOL
        library.CloseHandle.argtypes = (wintypes.HANDLE,)
        library.CloseHandle.restype = wintypes.BOOL
        return library

    def _make_job() -> int:
        """Return the handle of a new job, 0 if there can be none."""
        library = _kernel32()
        handle = library.CreateJobObjectW(None, None)
        if not handle:
            return 0
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE
        is_set = library.SetInformationJobObject(
            handle, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
        )
        if not is_set:
            library.CloseHandle(handle)
            return 0
        return int(handle)

    def _assign(job: int, process_id: int) -> bool:
        """Put a process into a job."""
        library = _kernel32()
        process = library.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, process_id)
        if not process:
            return False
        try:
            return bool(library.AssignProcessToJobObject(job, process))
        finally:
            library.CloseHandle(process)
