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
_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
_CACHE = {
    1: ("total_inactive_file", "total_active_file"),
    2: ("inactive_file", "active_file"),
}
_PEAK = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
_NO_SWAP = {1: ("memory.swappiness", "0"), 2: ("memory.swap.max", "0")}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}
"""Files that count under ``oom_kill`` what was killed."""


def joining(processes: Path, command: Sequence[str]) -> list[str]:
    """Return a command that first goes to the group whose file of processes this is."""
    return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(processes), *command]


class MemoryGroup:
    """A group whose processes may take so much memory and no swap."""

    def __init__(self, folder: Path, version: int, limit_bytes: int) -> None:
        self.folder = folder
        self.version = version
        self.set_limit(limit_bytes)
        name, value = _NO_SWAP[version]
        with contextlib.suppress(OSError):  # a system without swap may not have the file
            (folder / name).write_text(value, encoding="ascii")

    def set_limit(self, limit_bytes: int) -> None:
        """Let its processes take more, or less than they may now."""
        (self.folder / _LIMIT[self.version]).write_text(str(limit_bytes), encoding="ascii")

    @property
    def used_bytes(self) -> int:
        """What its processes hold now, cache of files included."""
        return SystemFiles().number(str(self.folder / _USED[self.version])) or 0

    @property
    def room_bytes(self) -> int:
        """What its processes may still take; cache of files gives way to that."""
        stat = SystemFiles().table(str(self.folder / "memory.stat"))
        cache_bytes = sum(stat.get(name, 0) for name in _CACHE[self.version])
        limit_bytes = SystemFiles().number(str(self.folder / _LIMIT[self.version])) or 0
        return limit_bytes - (self.used_bytes - cache_bytes)

    @property
    def name(self) -> str:
        """What kind of group it is, for the record of a test."""
        return f"version {self.version}"

    @property
    def peak_bytes(self) -> int:
        """The most that its processes held at any time, cache of files included."""
        return SystemFiles().number(str(self.folder / _PEAK[self.version])) or 0

    @property
    def num_killed(self) -> int:
        """Processes that the system killed for want of memory."""
        return SystemFiles().table(str(self.folder / _KILLS[self.version]))["oom_kill"]

    def run(
        self, command: Sequence[str], folder: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the group and return what it wrote."""
        return subprocess.run(
            self.command(command),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs another in the group, from its first instruction on."""
        return joining(self._processes, command)

    def close(self) -> None:
        """End what is left in the group and remove it."""
        for process_id in map(int, self._processes.read_text(encoding="ascii").split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        with contextlib.suppress(OSError):  # what was killed a moment ago may still be leaving
            self.folder.rmdir()

    @property
    def _processes(self) -> Path:
        return self.folder / "cgroup.procs"


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[MemoryGroup | None]:
    """Make a group and see that it is gone afterwards; None where that is not allowed.

    In CI a group is demanded wherever the kernel lets its user make one.
    """
    group = _make(limit_bytes)
    if group is None and os.environ.get("CI"):
        places = places_for_groups()
        assert not places, f"a memory group could be made in {places} and was not"
    try:
        yield group
    finally:
        if group is not None:
            group.close()


def places_for_groups() -> list[str]:
    """Return the folders in which the kernel lets this user make groups that limit memory."""
    files = SystemFiles()
    return [
        folder
        for version, folder in group_folders(files, "memory")
        if os.access(folder, os.W_OK)
        and not os.statvfs(folder).f_flag & os.ST_RDONLY
        and (version == 1 or "memory" in files.text(f"{folder}/cgroup.subtree_control").split())
    ]


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
