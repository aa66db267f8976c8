"""Field case H06: a load from a slow drive is cancelled at any point, and costs nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.main import StartOptions
from app.state.stages import Stage
from app.text.words import ShellWords
from app.views.rail import Page
from runtime.protocol.chat import SamplingSettings
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.runtime_process import is_alive
from tests.support.window import ANSWER_MS, WindowDriver

IS_DEEP = os.environ.get("LARDER_TEST_PROFILE") == "deep"
LOAD_S = 6.0
REACTION_S = 0.2
ENDED_S = 2.0
MEMORY_RATIO = 1.05
WIDE = TinyModel(num_layers=4, hidden_size=512, vocabulary_size=8192)
"""Most of it is the dense part, which a load waits for."""
Cancel = Callable[[WindowDriver], None]


def by_button(window: WindowDriver) -> None:
    window.click(window.program.window.strip, ShellWords.CANCEL)


def by_escape(window: WindowDriver) -> None:
    window.press(Qt.Key.Key_Escape)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "a model", WIDE)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all programs of the test put temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def window(
    qtbot: QtBot, tmp_path: Path, model: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WindowDriver]:
    """A window without a model, on a drive that takes seconds for this one."""
    assert temporary.is_dir()
    size = sum(path.stat().st_size for path in model.glob("*.safetensors"))
    profile = tmp_path / "machine.json"
    profile.write_text(json.dumps({"drive": {"most_gb_per_s": size / LOAD_S / 1e9}}))
    monkeypatch.setenv("LARDER_MACHINE", str(profile))
    driver = WindowDriver(qtbot, StartOptions(is_demo_wanted=False))
    try:
        driver.program.settings.change(
            sampling=SamplingSettings(temperature=0.0, max_tokens=4), is_sampling_of_model=False
        )
        qtbot.waitUntil(lambda: driver.program.session.machine is not None, timeout=ANSWER_MS)
        yield driver
    finally:
        driver.close()


@pytest.mark.skipif(not IS_DEEP, reason="takes a minute; the gate cancels with a made-up engine")
@pytest.mark.timeout(600)
def test_h06_cancelled_load_is_ended_in_time_and_leaves_nothing_behind(
    window: WindowDriver, model: Path, tmp_path: Path, tmp_home: Path, temporary: Path
) -> None:
    other = write_checkpoint(tmp_path / "another", TinyModel(num_layers=2))
    program = window.program
    program.window.show_page(Page.CHAT)
    for percent, cancel in ((10, by_button), (50, by_escape), (95, by_button)):
        resident_before = runtime_bytes(window)
        begin(window, model, percent)
        (process_id,) = runtimes()
        began_s = time.monotonic()
        cancel(window)
        assert program.session.stage is not Stage.LOADING, "it is seen at once"
        assert time.monotonic() - began_s < REACTION_S
        window.qtbot.waitUntil(lambda: not is_alive(process_id), timeout=ANSWER_MS)  # noqa: B023
        assert time.monotonic() - began_s < ENDED_S
        window.qtbot.waitUntil(
            lambda: program.session.loaded is None and program.client.is_open, timeout=ANSWER_MS
        )
        assert program.session.error is None
        assert runtime_bytes(window) <= resident_before * MEMORY_RATIO
        assert temporary_files(tmp_home, temporary) == []
    begin(window, model, 50)
    program.session.load_folder(str(other), None)
    window.wait_for_stage(Stage.READY, ANSWER_MS)
    assert program.session.loaded is not None
    assert program.session.loaded.name == other.name
    program.session.load_folder(str(model), None)
    window.qtbot.waitUntil(
        lambda: (
            program.session.stage is Stage.READY
            and program.session.loaded is not None
            and program.session.loaded.name == model.name
        ),
        timeout=ANSWER_MS,
    )
    window.send("a")
    window.wait_for_answer()
    assert program.chat.messages[-1].stats is not None


def begin(window: WindowDriver, model: Path, percent: int) -> None:
    """Begin to load, and wait until so much of it is read."""
    session = window.program.session
    session.load_folder(str(model), None)

    def is_so_far() -> bool:
        progress = session.progress
        return (
            session.stage is Stage.LOADING
            and progress is not None
            and progress.ratio is not None
            and progress.ratio * 100 >= percent
        )

    window.qtbot.waitUntil(is_so_far, timeout=ANSWER_MS)


def runtimes() -> list[int]:
    """The processes that the window has started."""
    return [child.pid for child in psutil.Process().children() if "runtime.service" in
            " ".join(child.cmdline())]  # fmt: skip


def runtime_bytes(window: WindowDriver) -> int:
    """What the runtime holds while it rests."""
    window.qtbot.waitUntil(lambda: len(runtimes()) == 1, timeout=ANSWER_MS)
    return int(psutil.Process(runtimes()[0]).memory_info().rss)


def temporary_files(*places: Path) -> list[str]:
    """Files that are written before they have their name, or that only a load would need."""
    return [path.name for path in places[0].rglob("*.new")] + [
        path.name for path in places[1].rglob("*") if path.is_file()
    ]
