"""Limits that a control group puts on this process, in both versions of Linux' control groups.

A group counts with all groups above it. Cache of files counts as free, because the kernel gives it
up before anything else::

    /                     memory.max 16 GiB   used 9 GiB, of it 3 GiB cache   room 10 GiB
    +- user.slice         memory.max max
       +- some.service    memory.max  8 GiB   used 5 GiB, of it 1 GiB cache   room  4 GiB  <- counts
"""

import dataclasses
from collections.abc import Iterator
from pathlib import PurePosixPath

from runtime.hardware.system_files import SystemFiles

_UNLIMITED_BYTES = 2**60
"""Version 1 says *no limit* by a huge number."""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupLimit:
    """The tightest memory limit and the least room of a group and those above it."""

    limit_bytes: int
    room_bytes: int
    method: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Names:
    """Names of the files of one version."""

    limits: tuple[str, ...]
    used: str
    cache: tuple[str, ...]


_NAMES = {
    2: _Names(("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file")),
    1: _Names(
        ("memory.limit_in_bytes",),
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
}


def memory_limit(files: SystemFiles) -> GroupLimit | None:
    """Return the memory limit that applies to this process, None if there is none."""
    limits: list[GroupLimit] = []
    for version, folder in group_folders(files, "memory"):
        names = _NAMES[version]
        for limit_name in names.limits:
            limit = files.number(f"{folder}/{limit_name}")
            if limit is None or limit >= _UNLIMITED_BYTES:
                continue
            used = files.number(f"{folder}/{names.used}") or 0
            stat = files.table(f"{folder}/memory.stat")
            cache = sum(stat.get(name, 0) for name in names.cache)
            room = max(0, limit - max(0, used - cache))
            limits.append(GroupLimit(limit, room, f"control group {limit_name}"))
    if not limits:
        return None
    tightest = min(limits, key=lambda item: item.limit_bytes)
    return dataclasses.replace(tightest, room_bytes=min(item.room_bytes for item in limits))


def processor_limit(files: SystemFiles) -> float | None:
    """Return how many processors' time this process may use, None if there is no limit."""
    shares: list[float] = []
    for version, folder in group_folders(files, "cpu"):
        if version == 2:
            quota, _, period = files.text(f"{folder}/cpu.max").strip().partition(" ")
        else:
            quota = files.text(f"{folder}/cpu.cfs_quota_us").strip()
            period = files.text(f"{folder}/cpu.cfs_period_us").strip()
        if quota.isdecimal() and period.isdecimal() and int(period):
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


def group_folders(files: SystemFiles, controller: str) -> Iterator[tuple[int, str]]:
    """Yield version and folder of this process's group and of every group above it, own first."""
    groups = dict(_own_groups(files))
    for line in files.text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, options = left.split(), right.split()
        if len(fields) < 5 or len(options) < 3:
            continue
        if options[0] == "cgroup2":
            version, own = 2, groups.get("")
        elif options[0] == "cgroup" and controller in options[2].split(","):
            version, own = 1, groups.get(controller)
        else:
            continue
        if own is None:
            continue
        yield from ((version, folder) for folder in _upwards(own, fields[3], fields[4]))


def _own_groups(files: SystemFiles) -> Iterator[tuple[str, str]]:
    """Yield controller and path of each group of this process; version 2 has no controller."""
    for line in files.text("/proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            if number.isdecimal() and path.startswith("/"):
                yield controller, path


def _upwards(own: str, mounted: str, mount_point: str) -> Iterator[str]:
    """Yield the folders of a group and of those above it that the mount shows.

    Inside a container the path may start above what is mounted; then the mount's own folder is the
    group.
    """
    path, top = PurePosixPath(own), PurePosixPath(mounted)
    inside = path.relative_to(top) if path.is_relative_to(top) else PurePosixPath()
    for part in (inside, *inside.parents):
        yield str(PurePosixPath(mount_point) / part)
