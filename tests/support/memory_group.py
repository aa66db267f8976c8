"""A memory control group of a test's own, below the one the test runs in."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from runtime.hardware.control_group import group_folders
from runtime.hardware.system_files import SystemFiles

_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_PEAK = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
_NO_SWAP = {1: ("memory.swappiness", "0"), 2: ("memory.swap.max", "0")}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}
"""Files that count under ``oom_kill`` what was killed."""


class MemoryGroup:
    """A group whose processes may take so much memory and no swap."""

    def __init__(self, folder: Path, version: int, limit_bytes: int) -> None:
        self._folder = folder
        self._version = version
        (folder / _LIMIT[version]).write_text(str(limit_bytes), encoding="ascii")
        name, value = _NO_SWAP[version]
        with contextlib.suppress(OSError):  # a system without swap may not have the file
            (folder / name).write_text(value, encoding="ascii")

    @property
    def peak_bytes(self) -> int:
        """The most that its processes held at any time, cache of files included."""
        return SystemFiles().number(str(self._folder / _PEAK[self._version])) or 0

    @property
    def num_killed(self) -> int:
        """Processes that the system killed for want of memory."""
        return SystemFiles().table(str(self._folder / _KILLS[self._version]))["oom_kill"]

    def run(
        self, command: Sequence[str], folder: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the group, from its first instruction on, and return what it wrote."""
        joined = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self._processes), *command]
        return subprocess.run(
            joined, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def close(self) -> None:
        """End what is left in the group and remove it."""
        for process_id in map(int, self._processes.read_text(encoding="ascii").split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        with contextlib.suppress(OSError):  # what was killed a moment ago may still be leaving
            self._folder.rmdir()

    @property
    def _processes(self) -> Path:
        return self._folder / "cgroup.procs"


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[MemoryGroup | None]:
    """Make a group and see that it is gone afterwards; None where that is not allowed."""
    group = _make(limit_bytes)
    try:
        yield group
    finally:
        if group is not None:
            group.close()


def _make(limit_bytes: int) -> MemoryGroup | None:
    for version, above in group_folders(SystemFiles(), "memory"):
        folder = Path(above) / f"larder-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            return MemoryGroup(folder, version, limit_bytes)
        except OSError:
            folder.rmdir()
    return None
