"""A copy is wanted where nothing can be written: the window says so, and goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

import app.main
from app.link.interpreter import module_command
from app.link.process import RuntimeCommand
from app.main import StartOptions
from app.state.stages import Stage
from app.views.models_view import ModelsView
from app.views.rail import Page
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import PlanKind
from tests.support.read_only import make_unwritable, where_unwritable
from tests.support.window import START_MS, WindowDriver

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="folders are closed POSIX's way"),
    pytest.mark.usefixtures("measured_before"),
]


@pytest.fixture(name="window")
def _window(
    qtbot: QtBot, tmp_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WindowDriver]:
    """A window whose runtime finds the place of prepared copies closed."""
    closed = tmp_home / "data" / "prepared"
    make_unwritable(closed)
    program = where_unwritable(closed, module_command("runtime.service"))
    monkeypatch.setattr(
        app.main, "RuntimeCommand", lambda words, log: RuntimeCommand(words, log, program)
    )
    driver = WindowDriver(qtbot, StartOptions(is_demo_wanted=False))
    yield driver
    driver.close()


def test_copy_in_a_place_that_is_closed_is_refused_in_words_and_the_model_loads_without(
    window: WindowDriver, demo_folder: Path
) -> None:
    program = window.program
    window.drop(demo_folder)
    window.qtbot.waitUntil(
        lambda: program.session.candidate is not None and program.session.candidate.can_load,
        timeout=START_MS,
    )
    program.session.choose_plan(PlanKind.EIGHT_BIT)
    view = program.window.page(Page.MODELS)
    assert isinstance(view, ModelsView)
    view.candidate_view.start_wanted.emit()

    window.qtbot.waitUntil(lambda: program.session.error is not None, timeout=START_MS)
    error = program.session.error
    assert error is not None
    assert error.code is ErrorCode.DISK_NOT_WRITABLE
    said = program.window.notice.text()
    assert said.startswith(f"Nothing can be written to {Path.home() / 'data' / 'prepared'}")
    assert "Choose another folder" in said
    assert "Traceback" not in said

    program.session.choose_plan(PlanKind.EXACT)
    view.candidate_view.start_wanted.emit()
    window.wait_for_stage(Stage.READY)
    assert program.window.notice.text() == ""
