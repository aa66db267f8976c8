"""An answer that was cut goes on, in the window."""

from __future__ import annotations

import msgspec
import psutil
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.state.chat_values import AnswerEnd
from app.state.stages import Stage
from app.text.words import ChatWords
from tests.gui.main.conftest import StartWindow
from tests.support.window import WindowDriver

ANSWER = " ".join(f"word{number}" for number in range(40))


def continue_buttons(window: WindowDriver) -> list[QPushButton]:
    """The buttons that are seen and let an answer go on."""
    return [
        button
        for button in window.program.chat_view.messages.findChildren(QPushButton)
        if button.text() == ChatWords.CONTINUE and button.isVisible()
    ]


def press_continue(window: WindowDriver, qtbot: QtBot) -> None:
    """Go to the button with the keyboard and press it."""
    qtbot.waitUntil(lambda: bool(continue_buttons(window)))
    (button,) = continue_buttons(window)
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Space)
    assert window.program.chat.is_answering
    assert continue_buttons(window) == []


def test_stopped_answer_goes_on_to_its_end(qtbot: QtBot, start_window: StartWindow) -> None:
    window = start_window([ANSWER], rate=60.0)
    chat = window.program.chat
    window.send("Count")
    window.wait_for_text(20)
    window.press(Qt.Key.Key_Escape)
    kept = window.wait_for_answer()
    assert ANSWER.startswith(kept)
    assert chat.messages[-1].end is AnswerEnd.STOPPED
    press_continue(window, qtbot)
    assert window.program.chat_view.composer.edit.hasFocus()
    assert window.wait_for_answer() == ANSWER
    assert chat.messages[-1].end is AnswerEnd.FINISHED
    assert len(chat.messages) == 2
    assert chat.messages[-1].num_variants == 1
    assert continue_buttons(window) == []
    view = window.program.chat_view.messages.views()[-1]
    assert view.message == chat.messages[-1]


def test_answer_of_a_runtime_that_died_goes_on_in_the_next(
    qtbot: QtBot, start_window: StartWindow
) -> None:
    window = start_window([ANSWER], rate=60.0)
    program = window.program
    window.send("Count")
    window.wait_for_text(20)
    for child in psutil.Process().children():
        child.kill()
    window.wait_for_stage(Stage.FAILED)
    assert program.chat.messages[-1].end is AnswerEnd.CUT_OFF
    assert continue_buttons(window) == []
    program.session.restart_runtime()
    window.wait_for_stage(Stage.READY)
    press_continue(window, qtbot)
    assert window.wait_for_answer() == ANSWER


def test_answer_at_the_limit_goes_on(qtbot: QtBot, start_window: StartWindow) -> None:
    window = start_window(["one two three four five"])
    settings = window.program.settings
    settings.change(sampling=msgspec.structs.replace(settings.values.sampling, max_tokens=3))
    window.send("Count")
    assert window.wait_for_answer() == "one two three"
    assert window.program.chat.messages[-1].end is AnswerEnd.LENGTH
    press_continue(window, qtbot)
    assert window.wait_for_answer() == "one two three four five"
