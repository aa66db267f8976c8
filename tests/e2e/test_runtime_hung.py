"""The real runtime stands still in mid-answer, as one does that waits for a lock for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil
import pytest

from app.link.client import MAX_SILENCE_S
from app.state.chat_values import AnswerEnd
from app.state.stages import Stage
from app.text.words import ShellWords
from tests.support.loop_gaps import LoopGaps
from tests.support.runtime_process import wait_until_gone
from tests.support.window import ANSWER_MS, WindowDriver

pytestmark = pytest.mark.usefixtures("measured_before")

MAX_GAP_S = 3.0
GONE_S = 10.0
Record = Callable[[str, object], None]


@pytest.mark.skipif(
    os.environ.get("LARDER_TEST_PROFILE") != "deep",
    reason="waits as long as a person would; in the gate a made-up runtime is silent",
)
def test_runtime_that_stands_still_is_ended_told_and_started_again(
    ready_window: WindowDriver, record_property: Record
) -> None:
    window, program = ready_window, ready_window.program
    window.send("Write a long story about a cook and a cellar.")
    window.wait_for_text(20)
    runtimes = window.runtimes()
    gaps = LoopGaps()
    gaps.start()
    for runtime in runtimes:
        runtime.suspend()
    begun_s = time.monotonic()
    window.qtbot.waitUntil(
        lambda: {runtime.status() for runtime in runtimes} == {psutil.STATUS_STOPPED},
        timeout=ANSWER_MS,
    )
    window.wait_for_stage(Stage.FAILED, ANSWER_MS)
    silent_s = time.monotonic() - begun_s
    record_property("told_after_s", str(round(silent_s, 1)))
    assert silent_s > MAX_SILENCE_S / 2
    assert gaps.stop() < MAX_GAP_S, "the window stays awake"
    answer = program.chat.messages[-1]
    assert answer.end is AnswerEnd.CUT_OFF
    assert len(answer.text) >= 20
    assert "did not answer for" in program.window.notice.text()
    for runtime in runtimes:
        wait_until_gone(runtime.pid, GONE_S)
    window.click(program.window.notice, ShellWords.RESTART)
    window.wait_for_stage(Stage.READY, ANSWER_MS)
    assert program.chat.continue_answer()
    assert window.wait_for_answer().startswith(answer.text)
