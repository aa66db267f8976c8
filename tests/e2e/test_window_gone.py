"""However the window goes, its worker goes with it; a worker that goes leaves the window."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.runtime_process import is_alive, wait_until_gone
from tests.support.window_process import WindowProcess, running_window

LEAVE_S = 5.0
"""The promise; the tests allow three times as much on a busy machine."""
Record = Callable[[str, object], None]


def close(window: WindowProcess) -> None:
    window.tell("close")


def crash(window: WindowProcess) -> None:
    window.tell("crash")


def terminate(window: WindowProcess) -> None:
    window.process.terminate()


def interrupt(window: WindowProcess) -> None:
    window.process.send_signal(signal.SIGINT)


def kill(window: WindowProcess) -> None:
    window.process.kill()


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (close, 0),
        (crash, -signal.SIGSEGV),
        (terminate, 0),
        (interrupt, 0),
        (kill, -signal.SIGKILL),
    ],
    ids=["closed", "crashed", "terminated", "interrupted", "killed"],
)
def test_window_gone_takes_the_worker_and_its_memory_along(
    tmp_home: Path,
    demo_folder: Path,
    record_property: Record,
    end: Callable[[WindowProcess], None],
    status: int,
) -> None:
    is_obedient = end in (close, crash)
    with running_window(tmp_home, demo_folder, is_obedient=is_obedient) as window:
        worker = window.wait_until_loaded()
        held_bytes = psutil.Process(worker).memory_info().rss
        assert held_bytes > 100 << 20, "the model lies in memory"
        end(window)
        gone_s = wait_until_gone(worker, 3 * LEAVE_S)
        record_property("worker_gone_s", str(round(gone_s, 3)))
        assert window.process.wait(3 * LEAVE_S) == status
        assert not is_alive(worker), "and with it everything it held"


def test_worker_killed_alone_is_gone_and_leaves_the_window(
    tmp_home: Path, demo_folder: Path, record_property: Record
) -> None:
    with running_window(tmp_home, demo_folder, is_obedient=True) as window:
        worker = window.wait_until_loaded()
        psutil.Process(worker).kill()
        record_property("worker_gone_s", str(round(wait_until_gone(worker, 3 * LEAVE_S), 3)))
        window.wait_until(lambda: not window.workers())
        assert window.process.poll() is None
        window.tell("close")
        assert window.process.wait(3 * LEAVE_S) == 0
