"""What the memory watch looks at: the memory that is really there."""

import dataclasses

import psutil

from runtime.hardware.memory import MemoryFacts, host_memory, read_memory
from runtime.hardware.pressure import stalled_ratio, swapped_out_bytes
from runtime.hardware.system_files import SystemFiles
from runtime.plan.memory import reserve_of
from runtime.plan.pressure import MemoryNow


class LocalGauge:
    """Reads the memory of this PC, within the limits that this process has.

    Threads: one thread calls it.
    """

    def __init__(self, files: SystemFiles | None = None) -> None:
        self._files = files or SystemFiles()
        self._swapped_bytes = swapped_out_bytes(self._files)

    def __call__(self) -> MemoryNow:
        """Look once."""
        facts = read_memory(host_memory(), self._files)
        before, self._swapped_bytes = self._swapped_bytes, swapped_out_bytes(self._files)
        return dataclasses.replace(
            memory_of(facts, psutil.Process().memory_info().rss),
            stalled_ratio=stalled_ratio(self._files),
            swapped_bytes=self._swapped_bytes - before,
        )


def memory_of(facts: MemoryFacts, own_bytes: int) -> MemoryNow:
    """Return what there is and what is left to the system."""
    total_bytes = int(facts.total.value)
    limit = facts.limit
    return MemoryNow(
        available_bytes=int(facts.available.value),
        own_bytes=own_bytes,
        reserve_bytes=reserve_of(total_bytes, total_bytes if limit is None else int(limit.value)),
    )
