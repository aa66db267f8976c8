"""However the window goes, its worker goes with it; a worker that goes leaves the window."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.padded_checkpoint import write_padded_checkpoint
from tests.support.runtime_process import is_alive, wait_until_gone
from tests.support.window_process import WindowProcess, running_window

pytestmark = pytest.mark.usefixtures("measured_before")

IS_DEEP = os.environ.get("LARDER_TEST_PROFILE") == "deep"
LEAVE_S = 5.0
"""The promise: the worker and its memory are gone within this time."""
PADDED_BYTES = 1200 << 20
"""Of routed experts, where there is time for a model of the size that the field case names."""
Record = Callable[[str, object], None]


def close(window: WindowProcess) -> None:
    window.tell("close")


def crash(window: WindowProcess) -> None:
    window.tell("crash")


def terminate(window: WindowProcess) -> None:
    window.process.terminate()


def interrupt(window: WindowProcess) -> None:
    window.process.send_signal(signal.SIGINT)


def log_out(window: WindowProcess) -> None:
    window.process.send_signal(signal.SIGHUP)


def kill(window: WindowProcess) -> None:
    window.process.kill()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, demo_folder: Path) -> tuple[Path, int]:
    """The folder of a model and the bytes that it holds at least once it is loaded.

    The demo; in the long tests one with so many bytes of routed experts as the field case says.
    """
    if not IS_DEEP:
        return demo_folder, 100 << 20
    folder = tmp_path_factory.mktemp("padded") / "model"
    return folder, write_padded_checkpoint(folder, PADDED_BYTES)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (close, 0),
        (crash, -signal.SIGSEGV),
        (terminate, 0),
        (interrupt, 0),
        (log_out, 0),
        (kill, -signal.SIGKILL),
    ],
    ids=["closed", "crashed", "terminated", "interrupted", "logged out", "killed"],
)
def test_window_gone_takes_the_worker_and_its_memory_along(
    tmp_home: Path,
    model: tuple[Path, int],
    record_property: Record,
    end: Callable[[WindowProcess], None],
    status: int,
) -> None:
    folder, least_bytes = model
    is_obedient = end in (close, crash)
    with running_window(tmp_home, folder, is_obedient=is_obedient) as window:
        worker = window.wait_until_loaded()
        window.wait_until(lambda: psutil.Process(worker).memory_info().rss > least_bytes)
        end(window)
        gone_s = wait_until_gone(worker, LEAVE_S)
        record_property("worker_gone_s", str(round(gone_s, 3)))
        assert window.process.wait(LEAVE_S) == status
        assert not is_alive(worker), "and with it everything it held"


def test_worker_killed_alone_is_gone_and_leaves_the_window(
    tmp_home: Path, model: tuple[Path, int], record_property: Record
) -> None:
    with running_window(tmp_home, model[0], is_obedient=True) as window:
        worker = window.wait_until_loaded()
        psutil.Process(worker).kill()
        record_property("worker_gone_s", str(round(wait_until_gone(worker, LEAVE_S), 3)))
        window.wait_until(lambda: not window.workers())
        assert window.process.poll() is None
        window.tell("close")
        assert window.process.wait(LEAVE_S) == 0


@pytest.mark.skipif(not IS_DEEP, reason="two more starts of the whole program")
@pytest.mark.parametrize("end", [close, kill], ids=["closed", "killed"])
def test_window_takes_along_a_worker_that_stands_still(
    tmp_home: Path, demo_folder: Path, end: Callable[[WindowProcess], None]
) -> None:
    with running_window(tmp_home, demo_folder, is_obedient=end is close) as window:
        worker = psutil.Process(window.wait_until_loaded())
        worker.suspend()
        window.wait_until(lambda: worker.status() == psutil.STATUS_STOPPED)
        end(window)
        wait_until_gone(worker.pid, LEAVE_S)
        window.process.wait(LEAVE_S)
