"""RAM of this PC: how much there is, how much can be taken now, what limits it."""

import dataclasses
import os
import sys

import psutil

from runtime.hardware.control_group import memory_limit
from runtime.hardware.system_files import SystemFiles
from runtime.hardware.windows_memory import Kernel32, commit_room, job_limit, windows_kernel
from runtime.protocol.machine import Measured


@dataclasses.dataclass(frozen=True, slots=True)
class HostMemory:
    """What the system as a whole has, in bytes."""

    total_bytes: int
    available_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Total, available now, what of that is cache, and all limits that were found."""

    total: Measured
    available: Measured
    reclaimable: Measured | None
    limits: tuple[Measured, ...]
    """The tightest first. One of the total or more limits nothing, and is not the ``limit``."""

    @property
    def limit(self) -> Measured | None:
        """The tightest limit below the total, if one really applies."""
        return next((limit for limit in self.limits if limit.value < self.total.value), None)


def host_memory() -> HostMemory:
    """Ask the system; cache of files that it would give up counts as available."""
    memory = psutil.virtual_memory()
    return HostMemory(total_bytes=memory.total, available_bytes=memory.available)


def read_memory(
    host: HostMemory, files: SystemFiles, kernel: Kernel32 | None = None
) -> MemoryFacts:
    """Return the RAM facts of this process on a host; ``kernel`` is that of Windows, if it is."""
    kernel = kernel or windows_kernel()
    available, method = host.available_bytes, "psutil available"
    limits: list[Measured] = []
    group = memory_limit(files)
    if group is not None:
        limits.append(Measured(value=group.limit_bytes, method=group.method))
        if group.room_bytes < available and group.limit_bytes < host.total_bytes:
            available, method = group.room_bytes, f"{group.method} minus used"
    commit = _commit_room(files) if kernel is None else commit_room(kernel)
    if commit is not None and commit < available:
        available, method = commit, "commit limit minus committed"
    job = None if kernel is None else job_limit(kernel)
    address_space = _address_space_bytes()
    for limit, name in (
        (job, "job object of this process"),
        (address_space, "address space limit of this process"),
    ):
        if limit is not None:
            limits.append(Measured(value=limit, method=name))
            available = min(available, limit)
    if is_in_wsl(files):
        limits.append(Measured(value=host.total_bytes, method="WSL: memory in .wslconfig"))
    return MemoryFacts(
        total=Measured(value=host.total_bytes, method="psutil total"),
        available=Measured(value=available, method=method),
        reclaimable=_reclaimable(files),
        limits=tuple(sorted(limits, key=lambda limit: limit.value)),
    )


def is_in_wsl(files: SystemFiles) -> bool:
    """Whether this system is a guest of Windows, which gives it a part of the PC's memory."""
    return "microsoft" in files.text("/proc/sys/kernel/osrelease").lower()


def _reclaimable(files: SystemFiles) -> Measured | None:
    """Return the cache that the system gives up when memory is wanted; None if not told."""
    table = files.table("/proc/meminfo")
    if "Cached" not in table:
        return None
    # Memory of shared files counts as cache there, and cannot be given up.
    cache = table["Cached"] - table.get("Shmem", 0)
    cache += table.get("Buffers", 0) + table.get("SReclaimable", 0)
    return Measured(value=max(0, cache) * 1024, method="meminfo, cache of files")


def _commit_room(files: SystemFiles) -> int | None:
    """Return what may still be promised where the system never promises more than it has."""
    if files.number("/proc/sys/vm/overcommit_memory") != 2:
        return None
    table = files.table("/proc/meminfo")
    if "CommitLimit" not in table or "Committed_AS" not in table:
        return None
    return max(0, table["CommitLimit"] - table["Committed_AS"]) * 1024


def _address_space_bytes() -> int | None:
    """Return the limit of this process's address space, None if there is none."""
    if sys.platform == "win32" or os.name != "posix":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit
