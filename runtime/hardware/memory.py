"""RAM of this PC: how much there is, how much can be taken now, what limits it."""

import dataclasses
import os
import sys

import psutil

from runtime.hardware.control_group import memory_limit
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.machine import Measured


@dataclasses.dataclass(frozen=True, slots=True)
class HostMemory:
    """What the system as a whole has, in bytes."""

    total_bytes: int
    available_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Total, available now, and a limit below the total if one really applies."""

    total: Measured
    available: Measured
    limit: Measured | None


def host_memory() -> HostMemory:
    """Ask the system; cache of files that it would give up counts as available."""
    memory = psutil.virtual_memory()
    return HostMemory(total_bytes=memory.total, available_bytes=memory.available)


def read_memory(host: HostMemory, files: SystemFiles) -> MemoryFacts:
    """Return the RAM facts of this process on a host."""
    available, method = host.available_bytes, "psutil available"
    limit: Measured | None = None
    group = memory_limit(files)
    if group is not None and group.limit_bytes < host.total_bytes:
        limit = Measured(value=group.limit_bytes, method=group.method)
        if group.room_bytes < available:
            available, method = group.room_bytes, f"{group.method} minus used"
    commit = _commit_room(files)
    if commit is not None and commit < available:
        available, method = commit, "commit limit minus committed"
    address_space = _address_space_bytes()
    if address_space is not None and address_space < (limit.value if limit else host.total_bytes):
        limit = Measured(value=address_space, method="address space limit of this process")
        available = min(available, address_space)
    return MemoryFacts(
        total=Measured(value=host.total_bytes, method="psutil total"),
        available=Measured(value=available, method=method),
        limit=limit,
    )


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
