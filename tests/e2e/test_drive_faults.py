"""The whole program on a drive that fails, stalls or takes the runtime down in mid-answer."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import main
from app.link.process import RuntimeCommand
from app.state.chat_values import AnswerEnd
from app.state.folders import app_folders
from app.state.stages import Stage
from app.text.words import ShellWords
from app.views.rail import Page
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlanKind
from runtime.protocol.telemetry import NoteCode
from tests.support.faulty_drive import Fault, faulty_drive, why_not
from tests.support.faulty_runtime import FOLDER_VARIABLE, Faults
from tests.support.hand_made_plans import exact_plan
from tests.support.loop_gaps import LoopGaps
from tests.support.private_files import open_to_others
from tests.support.tiers_on_screen import open_monitor
from tests.support.window import ANSWER_MS, WindowDriver

pytestmark = pytest.mark.usefixtures("measured_before")

IS_DEEP = os.environ.get("LARDER_TEST_PROFILE") == "deep"
STALL_S = 30.0 if IS_DEEP else 7.0
"""In the gate until a stall is told for certain: the watch looks each 1.25 s from 5 s on."""
STORY = "Write a long story about a cook and a cellar."
MAX_GAP_S = 3.0
NUM_SLOTS = 20
"""Of the 32 experts of each layer so many have room in RAM."""
CONTEXT_TOKENS = 512
MIN_LENGTH = 20
"""Characters of an answer before anything goes wrong."""
Record = Callable[[str, object], None]


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """What goes wrong with the drive of the runtime that the window starts."""
    folder = tmp_path / "faults"
    folder.mkdir()
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    module = "tests.support.faulty_runtime"
    program = RuntimeCommand().program
    assert program[-1] == "runtime.service"
    faulty = functools.partial(RuntimeCommand, program=(*program[:-1], module))
    monkeypatch.setattr(main, "RuntimeCommand", faulty)
    return Faults(folder)


@contextlib.contextmanager
def open_window(
    qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WindowDriver]:
    """The demo with RAM for five eighths of its experts: every answer reads from the drive."""
    small = exact_plan(folder, NUM_SLOTS, CONTEXT_TOKENS)
    monkeypatch.setenv("LARDER_DEMO_DIR", str(folder))
    driver = WindowDriver(qtbot, main.StartOptions())
    try:
        driver.program.settings.change(
            last_folder=str(folder),
            last_plan=PlanKind.EXACT,
            context_tokens=CONTEXT_TOKENS,
            ram_budget_bytes=small.budgets.ram_bytes,
            sampling=SamplingSettings(temperature=0.0, max_tokens=18),
            is_sampling_of_model=False,
        )
        driver.wait_for_stage(Stage.READY, ANSWER_MS)
        yield driver
    finally:
        driver.close()


def begin_story(window: WindowDriver) -> None:
    """Ask for a long answer and wait until it has begun."""
    window.program.chat.new_chat()
    window.send(STORY)
    window.wait_for_text(MIN_LENGTH)


@pytest.mark.timeout(300)
def test_drive_that_fails_stalls_and_takes_the_runtime_along_costs_nothing_but_time(
    qtbot: QtBot,
    faults: Faults,
    demo_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_home: Path,
    record_property: Record,
) -> None:
    with open_window(qtbot, demo_folder, monkeypatch) as window:
        window.send(STORY)
        expected = window.wait_for_answer()
        gone = os.strerror(errno.ENODEV)
        _fail_in_mid_answer(window, faults.failing(errno.ENODEV), {gone}, expected)
        longest_s = _stall_in_mid_answer(window, faults.stall, expected)
        record_property("longest_gap_s", str(longest_s))
        _crash_in_mid_answer(window, faults, expected, tmp_home)
    assert open_to_others(tmp_home) == []


@pytest.mark.timeout(600)
@pytest.mark.skipif(not IS_DEEP, reason="takes a minute; without the window it is in every gate")
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_drive_that_fails_below_the_system_or_is_pulled_out_costs_nothing_but_time(
    qtbot: QtBot,
    demo_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    with (
        faulty_drive(demo_folder, tmp_path) as drive,
        open_window(qtbot, drive.place, monkeypatch) as window,
    ):
        window.send(STORY)
        expected = window.wait_for_answer()
        bad = os.strerror(errno.EIO)
        _fail_in_mid_answer(window, drive.failing(errno.EIO), {bad}, expected)
        gone = {os.strerror(number) for number in (errno.ENOTCONN, errno.ECONNABORTED)}
        _fail_in_mid_answer(window, drive.away(), gone, expected)
        stall = functools.partial(drive.put, Fault.STALL)
        record_property("longest_gap_s", str(_stall_in_mid_answer(window, stall, expected)))
        record_property("faults_met", drive.num_met)


def _fail_in_mid_answer(
    window: WindowDriver,
    failing: contextlib.AbstractContextManager[None],
    reasons: set[str],
    expected: str,
) -> None:
    """The drive is gone: the answer is kept, told in words, and goes on once it is back."""
    program = window.program
    begin_story(window)
    with failing:
        begun = window.wait_for_answer()
    assert program.chat.messages[-1].end is AnswerEnd.CUT_OFF
    assert len(begun) >= MIN_LENGTH
    assert expected.startswith(begun)
    notice = program.chat_view.notice.text()
    assert any(reason in notice for reason in reasons)
    assert "Check that the drive is connected" in notice
    assert program.session.stage is Stage.READY
    assert program.chat.continue_answer(), "the drive is back"
    assert window.wait_for_answer().startswith(expected), "the same words, and more of them"


def _stall_in_mid_answer(
    window: WindowDriver, stall: Callable[[float], object], expected: str
) -> float:
    """A read stalls: it is told, the window stays awake, the answer is the same."""
    program = window.program
    notes: list[NoteCode] = []
    program.session.sample_received.connect(
        lambda sample: notes.extend(note.code for note in sample.notes)
    )
    begin_story(window)
    open_monitor(window)
    gaps = LoopGaps()
    gaps.start()
    stall(STALL_S)
    patience_ms = ANSWER_MS + int(STALL_S * 1000)
    window.qtbot.waitUntil(lambda: NoteCode.DRIVE_STALLED in notes, timeout=patience_ms)
    window.qtbot.waitUntil(lambda: not program.chat.is_answering, timeout=patience_ms)
    longest_s = gaps.stop()
    assert longest_s < MAX_GAP_S
    assert program.chat.messages[-1].text == expected
    assert program.session.stage is Stage.READY
    program.window.show_page(Page.CHAT)
    return longest_s


def _crash_in_mid_answer(
    window: WindowDriver, faults: Faults, expected: str, tmp_home: Path
) -> None:
    """The runtime crashes in a kernel: its stack and the answer are kept, and it comes back."""
    program = window.program
    begin_story(window)
    faults.crash()
    window.wait_for_stage(Stage.FAILED, ANSWER_MS)
    answer = program.chat.messages[-1]
    assert answer.end is AnswerEnd.CUT_OFF
    assert len(answer.text) >= MIN_LENGTH
    assert expected.startswith(answer.text)
    outcome = program.session.outcome
    assert outcome is not None
    assert outcome.is_crash
    log = app_folders({"LARDER_HOME": str(tmp_home)}).runtime_log.read_text(encoding="utf-8")
    assert "Segmentation fault" in log
    assert "in experts" in log, "the call of the kernel"
    window.click(program.window.notice, ShellWords.RESTART)
    window.wait_for_stage(Stage.READY, ANSWER_MS)
    assert program.chat.continue_answer()
    assert window.wait_for_answer().startswith(expected), "the same words, and more of them"
