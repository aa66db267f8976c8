"""What the memory watch looks at, from the files in which Linux tells it."""

from pathlib import Path

import pytest

from runtime.hardware.memory import MemoryFacts
from runtime.hardware.pressure import stalled_ratio, swapped_out_bytes
from runtime.hardware.system_files import SystemFiles
from runtime.plan.memory import GIB
from runtime.protocol.machine import Measured
from runtime.service.memory_gauge import LocalGauge, memory_of

_MOUNT = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def test_stalled_ratio_is_the_worst_of_the_pc_and_its_groups(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path)
    assert stalled_ratio(files) == 0.0
    put(tmp_path, "proc/pressure/memory", "some avg10=1.50 avg60=0 total=1\nfull avg10=99.00\n")
    assert stalled_ratio(files) == pytest.approx(0.015)
    put(tmp_path, "proc/self/mountinfo", _MOUNT)
    put(tmp_path, "proc/self/cgroup", "0::/a.slice/b.service\n")
    put(tmp_path, "sys/fs/cgroup/a.slice/memory.pressure", "some avg10=40.00 avg60=0.00\n")
    put(tmp_path, "sys/fs/cgroup/a.slice/b.service/memory.pressure", "some avg10=7.00\n")
    assert stalled_ratio(files) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "text", ["", "some\n", "full avg10=9.00\n", "some avg10=x\n", "some a=1\n"]
)
def test_stalled_ratio_of_what_is_not_understood_is_0(tmp_path: Path, text: str) -> None:
    put(tmp_path, "proc/pressure/memory", text)
    assert stalled_ratio(SystemFiles(tmp_path)) == 0.0


def test_gauge_counts_what_was_swapped_since_the_look_before(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path)
    assert swapped_out_bytes(files) == 0
    put(tmp_path, "proc/vmstat", "pswpin 1\npswpout 10\n")
    page_bytes = swapped_out_bytes(files) // 10
    gauge = LocalGauge(files)
    put(tmp_path, "proc/vmstat", "pswpin 1\npswpout 35\n")

    assert gauge().swapped_bytes == 25 * page_bytes
    assert gauge().swapped_bytes == 0


def test_gauge_says_what_this_process_and_its_system_have() -> None:
    now = LocalGauge()()

    assert now.own_bytes > 0
    assert now.available_bytes > 0
    assert now.reserve_bytes > 0


def test_memory_of_a_group_leaves_less_to_the_system(tmp_path: Path) -> None:
    def facts(*limits: int) -> MemoryFacts:
        return MemoryFacts(
            total=Measured(value=16 * GIB, method="test"),
            available=Measured(value=5 * GIB, method="test"),
            reclaimable=None,
            limits=tuple(Measured(value=limit, method="test") for limit in limits),
        )

    assert memory_of(facts(), 7).reserve_bytes == 16 * GIB // 10
    assert memory_of(facts(2 * GIB), 7).reserve_bytes == 2 * GIB // 20
    assert memory_of(facts(), 7).available_bytes == 5 * GIB
    assert memory_of(facts(), 7).own_bytes == 7
