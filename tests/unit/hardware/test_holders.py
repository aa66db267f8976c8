"""Programs that hold RAM, from made-up processes."""

import contextlib
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil

from runtime.hardware.holders import LEAST_BYTES, ram_holders
from runtime.protocol.machine import MemoryHolder

MIB = 1 << 20


class Process:
    def __init__(self, pid: int, name: str, rss: int, *, parent: int = 1, **more: int) -> None:
        self.pid = pid
        self._name = name
        self._parent = parent
        self._memory = SimpleNamespace(rss=rss, **more)

    @contextlib.contextmanager
    def oneshot(self) -> Iterator[None]:
        yield

    def ppid(self) -> int:
        return self._parent

    def name(self) -> str:
        return self._name

    def memory_info(self) -> Any:
        return self._memory


class Gone(Process):
    def name(self) -> str:
        raise psutil.NoSuchProcess(self.pid)


def test_holders_are_programs_by_name_the_largest_first_without_our_own() -> None:
    processes: list[Any] = [
        Process(10, "browser", 300 * MIB, shared=100 * MIB),
        Process(11, "browser", 900 * MIB, shared=100 * MIB),
        Process(12, "game", 700 * MIB),
        Process(13, "clock", LEAST_BYTES - 1),
        Gone(14, "gone", 5000 * MIB),
        Process(os.getpid(), "python", 5000 * MIB),
        Process(os.getppid(), "python", 5000 * MIB),
        Process(15, "helper", 5000 * MIB, parent=os.getpid()),
    ]
    assert ram_holders(processes) == [
        MemoryHolder(name="browser", process_id=11, held_bytes=1000 * MIB),
        MemoryHolder(name="game", process_id=12, held_bytes=700 * MIB),
    ]


def test_holders_of_this_pc_are_told() -> None:
    assert all((each.held_bytes or 0) >= LEAST_BYTES for each in ram_holders())
