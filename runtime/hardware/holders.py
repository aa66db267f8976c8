"""Which other programs hold much of the RAM, as far as the system tells."""

import collections
import os
from collections.abc import Iterable

import psutil

from runtime.protocol.machine import MemoryHolder

MAX_HOLDERS = 4
LEAST_BYTES = 100 << 20
"""A program that holds less is not named."""


def ram_holders(processes: Iterable[psutil.Process] | None = None) -> list[MemoryHolder]:
    """Return the programs that hold most of the RAM, the largest first; not this one and its own.

    All processes of one name count as one program, with the id of the largest. What they share
    with files is left out where the system tells it apart.
    """
    own = _own()
    sums: collections.Counter[str] = collections.Counter()
    largest: dict[str, tuple[int, int]] = {}
    for process in psutil.process_iter() if processes is None else processes:
        if process.pid in own:
            continue
        try:
            with process.oneshot():
                if process.ppid() in own:
                    continue
                name, memory = process.name(), process.memory_info()
        except psutil.Error:
            continue
        num_bytes = int(memory.rss - getattr(memory, "shared", 0))
        sums[name] += num_bytes
        largest[name] = max(largest.get(name, (0, 0)), (num_bytes, process.pid))
    return [
        MemoryHolder(name=name, process_id=largest[name][1], held_bytes=num_bytes)
        for name, num_bytes in sums.most_common(MAX_HOLDERS)
        if num_bytes >= LEAST_BYTES
    ]


def _own() -> frozenset[int]:
    """Return this process and the one that started it, which is the window."""
    return frozenset({os.getpid(), os.getppid()})
