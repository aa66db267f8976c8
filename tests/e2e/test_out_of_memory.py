"""The runtime killed for want of memory: the window says so, keeps what came, and goes on after."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import main
from app.link.process import RuntimeCommand
from app.state.chat_values import AnswerEnd
from app.state.stages import Stage
from app.text.words import ShellWords
from runtime.protocol.chat import SamplingSettings
from tests.gui.conftest import _nothing_left_behind  # noqa: F401
from tests.support.memory_group import MemoryGroup, memory_group
from tests.support.window import ANSWER_MS, WindowDriver

ROOMY_BYTES = 4 << 30
SPARE_BYTES = 1 << 20
LONG_PROMPT = "Tell me more about it. " + "bread and salt and oil " * 600


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    """A group with room enough, whose limit the test takes down."""
    with memory_group(ROOMY_BYTES) as made:
        if made is None:
            pytest.skip("no memory group may be made here")
        yield made


@pytest.fixture
def window(
    qtbot: QtBot, group: MemoryGroup, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WindowDriver]:
    """The demo, loaded by a runtime that lives in the group."""
    program = tuple(group.command(RuntimeCommand().program))
    monkeypatch.setattr(main, "RuntimeCommand", functools.partial(RuntimeCommand, program=program))
    driver = WindowDriver(qtbot, main.StartOptions(folder=str(demo_folder), is_demo_wanted=False))
    try:
        driver.program.settings.change(
            sampling=SamplingSettings(temperature=0.0, max_tokens=24), is_sampling_of_model=False
        )
        driver.wait_for_stage(Stage.READY, ANSWER_MS)
        yield driver
    finally:
        driver.close()


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="memory groups are of Linux")
def test_runtime_killed_for_want_of_memory_is_told_and_starts_again(
    window: WindowDriver, group: MemoryGroup
) -> None:
    program = window.program
    window.send("Write a long story about a cook and a cellar.")
    kept = window.wait_for_answer()
    group.set_limit(group.used_bytes + SPARE_BYTES)
    assert program.chat.ask(LONG_PROMPT)
    window.wait_for_stage(Stage.FAILED, ANSWER_MS)
    assert group.num_killed >= 1
    assert program.window.notice.text()
    outcome = program.session.outcome
    assert outcome is not None
    assert outcome.is_crash
    assert program.chat.messages[1].text == kept
    assert program.chat.messages[1].end is AnswerEnd.LENGTH
    assert program.chat.messages[2].text == LONG_PROMPT
    group.set_limit(ROOMY_BYTES)
    window.click(program.window.notice, ShellWords.RESTART)
    window.wait_for_stage(Stage.READY, ANSWER_MS)
    program.chat.new_chat()
    window.send("What is the capital of France?")
    assert window.wait_for_answer()
