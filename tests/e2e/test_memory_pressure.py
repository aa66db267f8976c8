"""Another program takes the PC's memory: the window says that the model gave some back."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import main
from app.link.process import RuntimeCommand
from app.state.stages import Stage
from app.text.monitor_phrases import note_line
from app.views.rail import Page
from runtime.protocol.chat import SamplingSettings
from tests.gui.conftest import _nothing_left_behind  # noqa: F401
from tests.support.memory_eater import MemoryEater
from tests.support.memory_group import MemoryGroup, memory_group
from tests.support.tiers_on_screen import open_monitor
from tests.support.window import ANSWER_MS, WindowDriver

IS_DEEP = os.environ.get("LARDER_TEST_PROFILE") == "deep"
MIB = 1024**2
LIMIT_BYTES = 1536 * MIB
BALLAST_BYTES = 800 * MIB
STEP_BYTES = 8 * MIB
MIN_ROOM_BYTES = 4 * MIB
QUESTION = "Write a long story about a cook and a cellar."
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not IS_DEEP,
    reason="memory groups are of Linux; in the gate the runtime is tried without a window",
)


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    with memory_group(LIMIT_BYTES) as made:
        if made is None:
            pytest.skip("no memory group may be made here")
        yield made


@pytest.fixture
def eater(group: MemoryGroup) -> Iterator[MemoryEater]:
    """Another program in the group, which holds the most of it."""
    with MemoryEater(group.command) as program:
        program.take(BALLAST_BYTES)
        yield program


@pytest.fixture
def window(
    qtbot: QtBot,
    group: MemoryGroup,
    eater: MemoryEater,
    demo_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[WindowDriver]:
    """The demo, loaded beside that program by a runtime that calms down soon."""
    assert eater is not None
    module = "tests.support.calm_runtime"
    calm = (*RuntimeCommand().program[:-1], module)
    program = tuple(group.command(calm))
    monkeypatch.setattr(main, "RuntimeCommand", functools.partial(RuntimeCommand, program=program))
    driver = WindowDriver(qtbot, main.StartOptions(folder=str(demo_folder), is_demo_wanted=False))
    try:
        driver.program.settings.change(
            sampling=SamplingSettings(temperature=0.0, max_tokens=24),
            is_sampling_of_model=False,
            context_tokens=512,
        )
        driver.wait_for_stage(Stage.READY, ANSWER_MS)
        yield driver
    finally:
        driver.close()


@pytest.mark.timeout(300)
def test_window_says_what_was_given_back_and_when_it_is_there_again(
    window: WindowDriver, group: MemoryGroup, eater: MemoryEater
) -> None:
    program = window.program
    session, strip = program.session, program.window.strip
    window.send(QUESTION)
    expected = window.wait_for_answer()
    plan = session.loaded_plan
    assert plan is not None
    assert not strip.memory_button.isVisible()
    while not strip.memory_button.isVisible():
        if group.room_bytes >= STEP_BYTES + MIN_ROOM_BYTES:
            eater.take(STEP_BYTES)
        window.qtbot.wait(50)
    assert "gave back" in strip.memory_button.text()
    assert "because the PC ran short" in strip.memory_button.toolTip()
    less = session.loaded_plan
    assert less is not None
    assert less.ram_bytes < plan.ram_bytes
    assert program.settings.values.ram_budget_bytes is None
    program.chat.new_chat()
    window.send(QUESTION)
    assert window.wait_for_answer() == expected
    program.window.show_page(Page.CHAT)
    open_monitor(window)
    eater.stop()
    window.qtbot.waitUntil(lambda: not strip.memory_button.isVisible(), timeout=ANSWER_MS)
    assert session.loaded_plan is not None
    assert session.loaded_plan.ram_bytes == plan.ram_bytes
    window.qtbot.waitUntil(
        lambda: any("There is room again" in line for line in told(window)), timeout=ANSWER_MS
    )
    assert any("Larder gave back" in line for line in told(window))
    program.window.show_page(Page.CHAT)
    program.chat.new_chat()
    window.send(QUESTION)
    assert window.wait_for_answer() == expected
    assert group.num_killed == 0


def told(window: WindowDriver) -> list[str]:
    """What the Monitor says has happened."""
    return [note_line(each.at_s, each.note) for each in window.program.telemetry.notes]
