"""One window for each person's files."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from app import instance
from app.instance import SingleInstance, Start
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow

ROOT = Path(__file__).resolve().parents[3]
SECOND = (
    "import sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication;"
    "from app.instance import SingleInstance; application = QCoreApplication([]);"
    "print(SingleInstance(Path(sys.argv[1])).start(sys.argv[2]).value)"
)
HOLDER = (
    "import sys, time; from pathlib import Path; from app.instance import SingleInstance;"
    "from PySide6.QtCore import QCoreApplication; application = QCoreApplication([]);"
    "first = SingleInstance(Path(sys.argv[1])); print(first.start().value, flush=True);"
    "time.sleep(100)"
)


def second_start(folder: Path, path: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SECOND, str(folder), path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def first(qtbot: QtBot, tmp_path: Path) -> Iterator[SingleInstance]:
    first = SingleInstance(tmp_path)
    assert first.start() is Start.FIRST
    yield first
    first.close()


def test_second_start_hands_its_folder_over_and_ends(
    first: SingleInstance, qtbot: QtBot, tmp_path: Path
) -> None:
    told: list[str] = []
    first.opened.connect(told.append)
    with second_start(tmp_path, "/modelle/größe") as second:
        qtbot.waitUntil(lambda: second.poll() is not None, timeout=30_000)
        assert second.stdout is not None
        assert second.stdout.read().strip() == "handed_over"
    assert told == ["/modelle/größe"]


def test_place_is_free_again_once_the_window_is_gone(
    first: SingleInstance, tmp_path: Path, qtbot: QtBot
) -> None:
    first.close()
    after = SingleInstance(tmp_path)
    assert after.start() is Start.FIRST
    after.close()


@contextlib.contextmanager
def silent_window(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the place and never answers."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline().strip() == "first"
            yield holder
        finally:
            holder.kill()


def test_place_of_a_window_that_was_killed_is_taken(tmp_path: Path, qtbot: QtBot) -> None:
    with silent_window(tmp_path):
        pass
    after = SingleInstance(tmp_path)
    assert after.start() is Start.FIRST
    after.close()


def test_window_that_does_not_answer_is_told_as_such(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance, "ANSWER_MS", 200)
    with silent_window(tmp_path):
        assert SingleInstance(tmp_path).start("/m") is Start.NO_ANSWER


def test_folder_that_cannot_be_written_does_not_keep_the_window_away(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance, "LOCK_NAME", "no such folder/window.lock")
    first = SingleInstance(tmp_path)
    assert first.start() is Start.FIRST
    first.close()


@pytest.mark.parametrize("message", [b"[1]\n", b"nonsense\n", b"x" * (1 << 17)])
def test_other_words_than_ours_are_thrown_away(
    first: SingleInstance, qtbot: QtBot, message: bytes
) -> None:
    told: list[str] = []
    first.opened.connect(told.append)
    socket = QLocalSocket()
    socket.connectToServer(first._name)
    assert socket.waitForConnected(5000)
    socket.write(message)
    socket.flush()
    unconnected = QLocalSocket.LocalSocketState.UnconnectedState
    qtbot.waitUntil(lambda: socket.state() is unconnected, timeout=10_000)
    assert told == []


def test_window_comes_to_the_front_with_the_folder_of_a_later_start(
    start_window: StartWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    driver = start_window(is_loading=False)
    window = driver.program.window
    window.showMinimized()
    qtbot.waitUntil(window.isMinimized)
    driver.program.open_again("")
    assert not window.isMinimized()
    assert window.current_page() is Page.CHAT
    driver.program.open_again(str(tmp_path))
    assert window.current_page() is Page.MODELS
    qtbot.waitUntil(lambda: driver.program.session.candidate is not None)


def test_program_started_twice_shows_one_window(tmp_path: Path, qtbot: QtBot) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LARDER_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "app", "--no-demo", "--engine", "scripted"]
    first = subprocess.Popen(command, env=env)
    try:
        lock = tmp_path / "data" / instance.LOCK_NAME
        qtbot.waitUntil(lock.exists, timeout=60_000)
        started_s = time.monotonic()
        second = subprocess.run([*command, str(tmp_path)], env=env, timeout=60, check=False)
        assert second.returncode == 0
        assert time.monotonic() - started_s < 60
        assert first.poll() is None
    finally:
        first.terminate()
        first.wait(30)
