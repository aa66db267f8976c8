"""Limits that Windows puts on this process: of its job, and what may still be committed."""

import ctypes
import sys
from typing import Protocol

_EXTENDED_LIMITS = 9
_PROCESS_MEMORY = 0x100
_JOB_MEMORY = 0x200


class Kernel32(Protocol):
    """The two functions of Windows that are asked."""

    def QueryInformationJobObject(  # noqa: N802
        self, job: None, kind: int, target: object, num_bytes: int, written: None, /
    ) -> int:
        """Fill ``target`` with the limits of this process's job; 0 if it is in none."""

    def GlobalMemoryStatusEx(self, target: object, /) -> int:  # noqa: N802
        """Fill ``target`` with what the system has; 0 if that failed."""


class JobLimits(ctypes.Structure):
    """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_set", ctypes.c_size_t),
        ("most_set", ctypes.c_size_t),
        ("num_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
        ("io", ctypes.c_uint64 * 6),
        ("process_bytes", ctypes.c_size_t),
        ("job_bytes", ctypes.c_size_t),
        ("peak_process_bytes", ctypes.c_size_t),
        ("peak_job_bytes", ctypes.c_size_t),
    )


class MemoryStatus(ctypes.Structure):
    """``MEMORYSTATUSEX``."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("commit_limit", ctypes.c_uint64),
        ("commit_room", ctypes.c_uint64),
        ("virtual_total", ctypes.c_uint64),
        ("virtual_available", ctypes.c_uint64),
        ("extended", ctypes.c_uint64),
    )


def windows_kernel() -> Kernel32 | None:
    """Return the library of Windows, None elsewhere."""
    if sys.platform == "win32":
        kernel: Kernel32 = ctypes.windll.kernel32
        return kernel
    else:  # noqa: RET505 (the type checker looks at one system at a time)
        return None


def job_limit(kernel: Kernel32) -> int | None:
    """Return the tightest limit in bytes of this process's job, None if there is none."""
    limits = JobLimits()
    size = ctypes.sizeof(limits)
    if not kernel.QueryInformationJobObject(
        None, _EXTENDED_LIMITS, ctypes.byref(limits), size, None
    ):
        return None
    named = ((_PROCESS_MEMORY, limits.process_bytes), (_JOB_MEMORY, limits.job_bytes))
    return min((num_bytes for flag, num_bytes in named if limits.flags & flag), default=None)


def commit_room(kernel: Kernel32) -> int | None:
    """Return how many bytes this process may still commit, None if that is not told."""
    status = MemoryStatus(size=ctypes.sizeof(MemoryStatus))
    return int(status.commit_room) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else None
