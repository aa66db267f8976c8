"""Memory and processor limits in made-up systems."""

import ctypes
from pathlib import Path
from typing import Any

import pytest

from runtime.hardware.control_group import memory_limit, processor_limit
from runtime.hardware.memory import HostMemory, host_memory, read_memory
from runtime.hardware.system_files import SystemFiles
from runtime.hardware.windows_memory import JobLimits
from tests.support.fake_systems import GIB, MIB, mount_line, system

HOST = HostMemory(total_bytes=32 * GIB, available_bytes=20 * GIB)
V2 = {
    "/proc/self/cgroup": "0::/user.slice/some.service",
    "/proc/self/mountinfo": mount_line("/sys/fs/cgroup", "cgroup2"),
}
V1 = {
    "/proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/",
    "/proc/self/mountinfo": "\n".join(
        (
            mount_line("/sys/fs/cgroup/memory", "cgroup", options="rw,memory"),
            mount_line("/sys/fs/cgroup/cpu", "cgroup", options="rw,cpu,cpuacct"),
            "a line that is not one",
        )
    ),
}
INNER = "/sys/fs/cgroup/user.slice/some.service"


def test_memory_without_groups_is_the_hosts(tmp_path: Path) -> None:
    facts = read_memory(HOST, SystemFiles(tmp_path))
    assert facts.total.value == 32 * GIB
    assert facts.available.value == 20 * GIB
    assert facts.limit is None
    assert facts.available.method == "psutil available"


def test_memory_group_version_2_counts_cache_as_free(tmp_path: Path) -> None:
    files = system(
        tmp_path,
        {
            **V2,
            f"{INNER}/memory.max": 8 * GIB,
            f"{INNER}/memory.current": 6 * GIB,
            f"{INNER}/memory.stat": f"anon 1\ninactive_file {GIB}\nactive_file {GIB}\nslab x",
        },
    )
    facts = read_memory(HOST, files)
    assert facts.limit is not None
    assert facts.limit.value == 8 * GIB
    assert facts.limit.method == "control group memory.max"
    assert facts.available.value == 4 * GIB
    assert facts.available.method == "control group memory.max minus used"


def test_memory_group_above_is_tighter(tmp_path: Path) -> None:
    files = system(
        tmp_path,
        {
            **V2,
            f"{INNER}/memory.max": "max",
            "/sys/fs/cgroup/user.slice/memory.high": 5 * GIB,
            "/sys/fs/cgroup/user.slice/memory.max": 10 * GIB,
            "/sys/fs/cgroup/user.slice/memory.current": 3 * GIB,
            "/sys/fs/cgroup/memory.max": "max",
        },
    )
    limit = memory_limit(files)
    assert limit is not None
    assert limit.limit_bytes == 5 * GIB
    assert limit.room_bytes == 2 * GIB
    assert limit.method == "control group memory.high"


def test_memory_room_of_a_looser_group_can_be_the_least(tmp_path: Path) -> None:
    files = system(
        tmp_path,
        {
            **V2,
            f"{INNER}/memory.max": 4 * GIB,
            "/sys/fs/cgroup/user.slice/memory.max": 8 * GIB,
            "/sys/fs/cgroup/user.slice/memory.current": 7 * GIB,
        },
    )
    limit = memory_limit(files)
    assert limit is not None
    assert (limit.limit_bytes, limit.room_bytes) == (4 * GIB, GIB)


def test_memory_group_that_says_max_everywhere_is_no_limit(tmp_path: Path) -> None:
    assert memory_limit(system(tmp_path, {**V2, f"{INNER}/memory.max": "max"})) is None


def test_memory_group_version_1_limits(tmp_path: Path) -> None:
    folder = "/sys/fs/cgroup/memory/docker/abc"
    files = system(
        tmp_path,
        {
            **V1,
            f"{folder}/memory.limit_in_bytes": 2 * GIB,
            f"{folder}/memory.usage_in_bytes": GIB,
            f"{folder}/memory.stat": f"total_inactive_file {256 * MIB}",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": 9223372036854771712,
        },
    )
    facts = read_memory(HOST, files)
    assert facts.limit is not None
    assert facts.limit.value == 2 * GIB
    assert facts.available.value == GIB + 256 * MIB


def test_memory_container_sees_only_its_own_group(tmp_path: Path) -> None:
    files = system(
        tmp_path,
        {
            "/proc/self/cgroup": "4:memory:/docker/abc",
            "/proc/self/mountinfo": mount_line(
                "/sys/fs/cgroup/memory", "cgroup", shown="/docker/abc", options="rw,memory"
            ),
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": GIB,
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": 2 * GIB,
        },
    )
    limit = memory_limit(files)
    assert limit is not None
    assert (limit.limit_bytes, limit.room_bytes) == (GIB, 0)
    moved = system(tmp_path, {"/proc/self/cgroup": "4:memory:/elsewhere"})
    assert memory_limit(moved) == limit


def test_memory_limit_above_the_total_is_none(tmp_path: Path) -> None:
    files = system(tmp_path, {**V2, f"{INNER}/memory.max": 64 * GIB})
    assert read_memory(HOST, files).limit is None


def test_memory_group_with_room_for_more_than_the_host_has(tmp_path: Path) -> None:
    files = system(tmp_path, {**V2, f"{INNER}/memory.max": 30 * GIB})
    facts = read_memory(HOST, files)
    assert facts.limit is not None
    assert facts.available.value == 20 * GIB


def test_memory_system_that_promises_no_more_than_it_has(tmp_path: Path) -> None:
    files = system(
        tmp_path,
        {
            "/proc/sys/vm/overcommit_memory": 2,
            "/proc/meminfo": "CommitLimit: 4194304 kB\nCommitted_AS: 3145728 kB",
        },
    )
    assert read_memory(HOST, files).available.value == GIB
    without = system(tmp_path, {"/proc/meminfo": "MemTotal: 1 kB"})
    assert read_memory(HOST, without).available.value == 20 * GIB


def test_memory_address_space_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.hardware.memory._address_space_bytes", lambda: 3 * GIB)
    facts = read_memory(HOST, SystemFiles(tmp_path))
    assert facts.limit is not None
    assert facts.limit.value == 3 * GIB
    assert facts.available.value == 3 * GIB


def test_host_memory_is_plausible() -> None:
    host = host_memory()
    assert 0 < host.available_bytes <= host.total_bytes


@pytest.mark.parametrize(
    ("content", "limit"), [("150000 100000", 1.5), ("max 100000", None), ("1 0", None), ("", None)]
)
def test_processor_limit_version_2(tmp_path: Path, content: str, limit: float | None) -> None:
    assert processor_limit(system(tmp_path, {**V2, f"{INNER}/cpu.max": content})) == limit


def test_processor_limit_version_1(tmp_path: Path) -> None:
    folder = "/sys/fs/cgroup/cpu/docker"
    files = system(
        tmp_path,
        {
            **V1,
            f"{folder}/cpu.cfs_quota_us": 200000,
            f"{folder}/cpu.cfs_period_us": 100000,
            "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": -1,
            "/sys/fs/cgroup/cpu/cpu.cfs_period_us": 100000,
        },
    )
    assert processor_limit(files) == 2


class FakeKernel:
    """Windows with a job of 6 GiB whose process may take 4, and 3 GiB left to commit."""

    def __init__(self, flags: int, *, tells: bool = True) -> None:
        self.flags = flags
        self.tells = tells

    def QueryInformationJobObject(
        self, _job: None, kind: int, target: Any, num_bytes: int, _written: None
    ) -> int:
        assert (kind, num_bytes) == (9, ctypes.sizeof(JobLimits))
        limits = target._obj
        limits.flags, limits.process_bytes, limits.job_bytes = self.flags, 4 * GIB, 6 * GIB
        return int(self.tells)

    def GlobalMemoryStatusEx(self, target: Any) -> int:
        assert target._obj.size == 64
        target._obj.commit_room = 3 * GIB
        return int(self.tells)


@pytest.mark.parametrize(("flags", "limit"), [(0x100, 4), (0x200, 6), (0x300, 4), (0, None)])
def test_memory_of_windows_is_limited_by_its_job_and_by_commit(
    tmp_path: Path, flags: int, limit: int | None
) -> None:
    facts = read_memory(HOST, SystemFiles(tmp_path), FakeKernel(flags))
    assert (facts.limit.value / GIB if facts.limit else None) == limit
    assert facts.available.value == 3 * GIB
    assert facts.available.method == "commit limit minus committed"


def test_memory_of_a_windows_that_tells_nothing_is_the_hosts(tmp_path: Path) -> None:
    facts = read_memory(HOST, SystemFiles(tmp_path), FakeKernel(0x300, tells=False))
    assert facts.available.value == HOST.available_bytes
    assert facts.limits == ()


def test_memory_of_a_guest_of_windows_names_whose_limit_it_is(tmp_path: Path) -> None:
    files = system(
        tmp_path,
        {
            **V2,
            "/proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2",
            f"{INNER}/memory.max": 8 * GIB,
            f"{INNER}/memory.current": GIB,
        },
    )
    facts = read_memory(HOST, files)
    assert [limit.method for limit in facts.limits] == [
        "control group memory.max",
        "WSL: memory in .wslconfig",
    ]
    assert facts.limit == facts.limits[0]


def test_memory_tells_which_part_is_cache(tmp_path: Path) -> None:
    lines = "Cached: 4096 kB\nShmem: 1024 kB\nBuffers: 10 kB\nSReclaimable: 20 kB"
    facts = read_memory(HOST, system(tmp_path, {"/proc/meminfo": lines}))
    assert facts.reclaimable is not None
    assert facts.reclaimable.value == (4096 - 1024 + 30) * 1024
    assert read_memory(HOST, SystemFiles(tmp_path / "none")).reclaimable is None
