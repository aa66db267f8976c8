"""A question that got no answer can be asked again as it stands."""

from __future__ import annotations

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.state.chat_values import AnswerEnd
from app.state.stages import Stage
from app.text.view_words import DialogWords
from app.views import edit_dialog
from runtime.protocol.chat import Role
from tests.gui.main.conftest import StartWindow
from tests.support.window import WindowDriver

QUESTION = "What is the capital of France?"


def ask_and_lose_the_answer(window: WindowDriver) -> None:
    """Ask, and kill the runtime before anything is answered."""
    window.send(QUESTION)
    for child in psutil.Process().children():
        child.kill()
    window.wait_for_stage(Stage.FAILED)
    assert [message.role for message in window.program.chat.messages] == [Role.USER]


def retry_buttons(window: WindowDriver) -> list[QPushButton]:
    """The buttons that are seen and ask a question again; Qt shows a new one an event later."""
    return [
        button
        for button in window.program.chat_view.messages.findChildren(QPushButton)
        if button.text() == DialogWords.RETRY and button.isVisible()
    ]


def test_question_without_an_answer_can_be_tried_again(
    qtbot: QtBot, start_window: StartWindow
) -> None:
    window = start_window(["Paris"], prompt_rate=0.2)
    program = window.program
    ask_and_lose_the_answer(window)
    qtbot.waitUntil(lambda: bool(retry_buttons(window)))
    (retry,) = retry_buttons(window)
    assert not retry.isEnabled()
    program.session.restart_runtime()
    window.wait_for_stage(Stage.READY)
    assert retry.isEnabled()
    QTest.mouseClick(retry, Qt.MouseButton.LeftButton)
    assert program.chat.is_answering
    assert retry_buttons(window) == []
    assert [message.role for message in program.chat.messages] == [Role.USER, Role.ASSISTANT]
    assert program.chat.messages[0].num_variants == 1
    window.press(Qt.Key.Key_Escape)
    window.wait_for_answer()


def test_answered_question_offers_no_second_try(start_window: StartWindow) -> None:
    window = start_window(["one", "two"])
    window.send("First")
    window.wait_for_answer()
    window.send("Second")
    window.wait_for_answer()
    assert window.program.chat.messages[-1].end is AnswerEnd.FINISHED
    assert retry_buttons(window) == []


def test_same_words_in_the_dialog_ask_an_unanswered_question_again(
    start_window: StartWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = start_window(["Paris"], prompt_rate=0.2)
    program = window.program
    ask_and_lose_the_answer(window)
    program.session.restart_runtime()
    window.wait_for_stage(Stage.READY)
    monkeypatch.setattr(edit_dialog, "ask_text", lambda _parent, _title, text: text)
    (question,) = program.chat_view.messages.views()
    question.edit_wanted.emit(question.message.message_id)
    assert program.chat.is_answering
    assert program.chat.messages[0].num_variants == 1
    window.press(Qt.Key.Key_Escape)
    window.wait_for_answer()


def test_same_words_in_the_dialog_ask_an_answered_question_again(
    start_window: StartWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = start_window(["one", "two"])
    program = window.program
    window.send(QUESTION)
    window.wait_for_answer()
    monkeypatch.setattr(edit_dialog, "ask_text", lambda _parent, _title, text: text)
    question = program.chat_view.messages.views()[0]
    question.edit_wanted.emit(question.message.message_id)
    window.wait_for_answer()
    assert [message.text for message in program.chat.messages] == [QUESTION, "two"]
