"""The test that leaves something behind is the test that fails: widgets, threads, processes."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import psutil
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QThread
from PySide6.QtWidgets import QApplication, QWidget

_WAIT_S = 2.0


def _widgets() -> list[QWidget]:
    """Widgets without a parent that are alive."""
    application = QCoreApplication.instance()
    if not isinstance(application, QApplication):
        return []
    for _ in range(3):
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        application.processEvents()
    return list(application.topLevelWidgets())


def _running_threads() -> list[QThread]:
    """Qt threads started from Python that still run."""
    return [
        thread for thread in gc.get_objects() if isinstance(thread, QThread) and thread.isRunning()
    ]


def _plain_threads() -> set[threading.Thread]:
    """Python's own threads; the stand-ins for foreign threads are nobody's leak."""
    return {
        thread
        for thread in threading.enumerate()
        if not isinstance(thread, threading._DummyThread)  # the only mark they have
    }


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Compare what there is after the test with what there was before."""
    widgets, threads = set(map(id, _widgets())), _plain_threads()
    children = set(psutil.Process().children(recursive=True))
    yield
    left: list[str] = []
    gc.collect()
    left += [f"widget {widget!r}" for widget in _widgets() if id(widget) not in widgets]
    left += [f"Qt thread {thread!r}" for thread in _running_threads()]
    for thread in _plain_threads() - threads:
        thread.join(_WAIT_S)
        left += [f"thread {thread.name}"] if thread.is_alive() else []
    started = [
        process for process in psutil.Process().children(recursive=True) if process not in children
    ]
    _, alive = psutil.wait_procs(started, timeout=_WAIT_S)
    for process in alive:
        left.append(f"process {process.pid} {process.name()}")
        process.kill()
    if left:
        pytest.fail("left behind by this test: " + ", ".join(left))
