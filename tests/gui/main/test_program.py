"""What a person does with the window, on answers that are known beforehand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.state.chat_values import AnswerEnd
from app.state.settings import ThemeChoice
from app.state.stages import Stage
from app.theme.palette import DARK
from app.views.models_view import ModelsView
from app.views.plan_card import PlanCard
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow
from tests.support.loop_gaps import LoopGaps
from tests.support.window import ANSWER_MS, START_MS

MAX_GAP_S = 0.1
"""Stated by the field cases; asserted at three times its value."""


def test_question_typed_is_answered_and_shown(qtbot: QtBot, start_window: StartWindow) -> None:
    window = start_window(["It is **Paris**.\n\n```python\nprint(1)\n```\n"])
    program = window.program
    window.send("What is the capital of France?")
    assert program.chat_view.composer.edit.toPlainText() == ""
    assert program.chat_view.composer.stop_button.isVisible()
    qtbot.waitUntil(lambda: program.chat.messages[-1].text != "", timeout=ANSWER_MS)
    assert program.chat_view.messages.progress() == ""
    window.wait_for_answer()
    question, answer = program.chat_view.messages.views()
    assert question.message.text == "What is the capital of France?"
    assert answer.message.text.startswith("It is **Paris**")
    assert answer.message.end is AnswerEnd.FINISHED
    assert program.chat_view.composer.send_button.isVisible()
    assert program.chat_view.composer.edit.hasFocus()


def test_window_process_never_imports_torch(qtbot: QtBot, start_window: StartWindow) -> None:
    window = start_window(["yes"])
    program = window.program
    window.send("Are you there?")
    window.wait_for_answer()
    for page in Page:
        program.window.show_page(page)
    assert "torch" not in sys.modules
    assert not any(name.startswith("runtime.generate") for name in sys.modules)


def test_escape_while_answering_stops_and_keeps_the_text(
    qtbot: QtBot, start_window: StartWindow
) -> None:
    window = start_window(["word " * 400], rate=40)
    program = window.program
    window.send("Go on")
    window.wait_for_text(10)
    window.press(Qt.Key.Key_Escape)
    window.wait_for_answer()
    message = program.chat.messages[-1]
    assert message.end is AnswerEnd.STOPPED
    assert 0 < len(message.text) < 2000
    assert program.chat.can_ask


def test_regenerate_gives_a_second_variant(qtbot: QtBot, start_window: StartWindow) -> None:
    window = start_window(["first", "second"])
    program = window.program
    window.send("Say something")
    window.wait_for_answer()
    program.chat_view.messages.views()[-1].regenerate_wanted.emit()
    qtbot.waitUntil(lambda: program.chat.messages[-1].text == "second", timeout=ANSWER_MS)
    window.wait_for_answer()
    assert program.chat.messages[-1].num_variants == 2
    program.chat_view.messages.views()[-1].variant_wanted.emit(
        program.chat.messages[-1].message_id, -1
    )
    assert program.chat_view.messages.views()[-1].message.text == "first"


def test_new_chat_key_begins_an_empty_chat_and_keeps_the_old(
    qtbot: QtBot, start_window: StartWindow
) -> None:
    window = start_window(["one"])
    program = window.program
    window.send("A question")
    window.wait_for_answer()
    window.press(Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert program.chat.messages == []
    assert [chat.title for chat in program.chat.chats] == ["A question"]
    program.chat_view.chat_list.chosen.emit(program.chat.chats[0].chat_id)
    # A chat is drawn from its end, in slices.
    qtbot.waitUntil(
        lambda: (
            [view.message.text for view in program.chat_view.messages.views()]
            == ["A question", "one"]
        )
    )


def test_page_keys_show_the_pages(start_window: StartWindow) -> None:
    window = start_window(is_loading=False)
    program = window.program
    for number, page in enumerate(Page, start=1):
        key = Qt.Key(Qt.Key.Key_0.value + number)
        window.press(key, Qt.KeyboardModifier.ControlModifier)
        assert program.window.current_page() is page


def test_folder_dropped_anywhere_is_planned_and_can_be_started(
    qtbot: QtBot, start_window: StartWindow, tmp_path: Path
) -> None:
    window = start_window(is_loading=False)
    program = window.program
    folder = tmp_path / "dropped"
    folder.mkdir()
    window.drop(folder)
    assert program.window.current_page() is Page.MODELS
    view = program.window.page(Page.MODELS)
    assert isinstance(view, ModelsView)
    qtbot.waitUntil(lambda: len(view.candidate_view.findChildren(PlanCard)) > 1, timeout=START_MS)
    view.candidate_view.start_wanted.emit()
    qtbot.waitUntil(lambda: program.session.stage is Stage.READY, timeout=START_MS)
    assert program.window.current_page() is Page.CHAT


def test_dark_theme_chosen_changes_every_part(qtbot: QtBot, start_window: StartWindow) -> None:
    window = start_window(["text with `code`\n\n```python\nx = 1\n```\n"])
    program = window.program
    window.send("Show code")
    window.wait_for_answer()
    for page in Page:
        program.window.show_page(page)
    program.settings.change(theme=ThemeChoice.DARK)
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    assert DARK.background in application.styleSheet()
    program.window.show_page(Page.CHAT)
    picture = program.window.grab().toImage()
    assert picture.pixelColor(2, picture.height() - 2).name().upper() == DARK.background


def test_every_control_has_an_accessible_name(
    qtbot: QtBot, start_window: StartWindow, tmp_path: Path
) -> None:
    window = start_window(["a\n\n```c\nint x;\n```\n"])
    program = window.program
    window.send("Show code")
    window.wait_for_answer()
    (tmp_path / "other").mkdir()
    window.drop(tmp_path / "other")
    qtbot.waitUntil(
        lambda: bool(program.session.candidate and program.session.candidate.plans),
        timeout=START_MS,
    )
    for page in Page:
        program.window.show_page(page)
    nameless = [
        widget
        for widget in program.window.findChildren(QWidget)
        if isinstance(widget, QAbstractButton | QLineEdit | QComboBox)
        and not widget.isHidden()
        and widget.focusPolicy() != Qt.FocusPolicy.NoFocus
        and not (widget.accessibleName() or getattr(widget, "text", str)())
        and not widget.objectName().startswith("qt_")
    ]
    assert nameless == []


def test_killed_runtime_is_reported_and_can_be_started_again(
    qtbot: QtBot, start_window: StartWindow
) -> None:
    window = start_window(["word " * 400], rate=40)
    program = window.program
    window.send("Go on")
    window.wait_for_text(10)
    for child in psutil.Process().children():
        child.kill()
    qtbot.waitUntil(lambda: program.session.stage is Stage.FAILED, timeout=ANSWER_MS)
    assert program.chat.messages[-1].end is AnswerEnd.CUT_OFF
    assert "word" in program.chat.messages[-1].text
    assert program.window.notice.text()
    program.session.restart_runtime()
    qtbot.waitUntil(lambda: program.session.stage is Stage.READY, timeout=START_MS)
    assert program.window.notice.text() == ""
    assert program.chat.can_ask


def test_closed_window_ends_the_runtime(start_window: StartWindow) -> None:
    window = start_window(["one"])
    program = window.program
    children = psutil.Process().children()
    assert children
    program.window.close()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []


def test_window_stays_responsive_while_a_fast_answer_streams(
    qtbot: QtBot, start_window: StartWindow, record_property: Callable[[str, object], None]
) -> None:
    paragraph = "Some **words** and `code` in a paragraph that goes on for a line or two.\n\n"
    text = (paragraph * 6 + "- a\n- b\n\n```python\n" + "x = 1\n" * 60 + "```\n\n") * 3
    window = start_window([text], rate=400)
    gaps = LoopGaps()
    gaps.start()
    window.send("Write a lot")
    window.wait_for_answer()
    longest_s = gaps.stop()
    record_property("longest_gap_s", str(longest_s))
    assert longest_s < 3 * MAX_GAP_S
