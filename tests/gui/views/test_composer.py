"""Files that go with a question, its tokens, and what to do when they are too many."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.text import chat_phrases
from app.text.words import ChatWords
from app.theme.palette import DARK
from app.views.chat_view import ChatView
from app.views.composer import Composer
from runtime.protocol.chat import Role
from runtime.protocol.messages import CountTokens
from tests.gui.state.test_prompt_count import answer_count
from tests.support.monitor_stage import MonitorStage
from tests.support.played_answers import talk

FULL = "With this question the chat has 4,096 tokens; the context has room for 4,095 and an answer"


def drop(composer: Composer, *paths: Path) -> bool:
    """Drag files over the composer and let them go; return whether they were welcome."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    action, left, none = (
        Qt.DropAction.CopyAction,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    enter = QDragEnterEvent(QPoint(5, 5), action, data, left, none)
    composer.dragEnterEvent(enter)
    if enter.isAccepted():
        composer.dropEvent(QDropEvent(QPointF(5, 5), action, data, left, none))
    return enter.isAccepted()


def test_dropped_text_goes_with_the_question(composer: Composer, tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.txt"
    one.write_text("a,b\n1,2\n", encoding="utf-8")
    two.write_text("more", encoding="utf-8")
    composer.edit.setPlainText("Sum this up")
    assert drop(composer, one, two)
    assert composer.field.text() == (
        "Sum this up\n\none.csv:\n\n```csv\na,b\n1,2\n```\n\ntwo.txt:\n\n```txt\nmore\n```"
    )
    assert composer.send_button.isEnabled()
    composer.field.take_out_button.click()
    assert composer.field.text() == "Sum this up"


def test_folders_and_weights_are_left_to_the_window(composer: Composer, tmp_path: Path) -> None:
    weights = tmp_path / "model.SAFETENSORS"
    weights.write_bytes(b"x")
    assert not drop(composer, tmp_path)
    assert not drop(composer, weights)
    assert not drop(composer)


def test_chosen_file_that_is_no_text_is_refused_in_words(
    composer: Composer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "photo.png"
    place.write_bytes(b"\x89PNG\x00")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(place)], ""))
    composer.attach_button.click()
    assert composer.field.refusal() == (
        "photo.png is no text file. Save it as plain text first, or paste the words."
    )
    assert composer.field.is_empty()
    before = composer.attach_button.icon().cacheKey()
    composer.show_palette(DARK)
    assert composer.attach_button.icon().cacheKey() != before


@pytest.mark.parametrize(
    ("prompt_tokens", "context_tokens", "told", "is_full"),
    [
        (None, 0, "", False),
        (7, 0, "", False),
        (None, 4096, "120 of 4,096 tokens", False),
        (300, 4096, "300 of 4,096 tokens with this question", False),
        (4096, 4096, FULL, True),
    ],
)
def test_meter_tells_what_the_question_takes(
    composer: Composer, prompt_tokens: int | None, context_tokens: int, told: str, is_full: bool
) -> None:
    composer.show_context(120, context_tokens, prompt_tokens)
    assert composer.meter.text() == told
    assert composer.choices.isVisible() == is_full


def test_question_too_long_for_its_chat_is_asked_in_a_new_one(
    page: ChatView, stage: MonitorStage, qtbot: QtBot
) -> None:
    talk(page._chat, stage.client, "one", "first")
    page.show()
    page.composer.edit.setPlainText("a long question")
    qtbot.waitUntil(lambda: stage.client.count(CountTokens) == 1)
    answer_count(stage.client, 5000)
    assert page.composer.choices.isVisible()
    with qtbot.waitSignal(page.models_wanted):
        page.composer.longer_button.click()
    page.composer.new_chat_button.click()
    assert page._chat.messages == []
    assert page._chat.draft == "a long question"
    assert page.composer.field.text() == "a long question"
    assert not page.composer.choices.isVisible()
    qtbot.waitUntil(lambda: stage.client.count(CountTokens) == 2)
    answer_count(stage.client, 4500)
    assert page.composer.choices.isVisible()
    assert page.composer.new_chat_button.isHidden(), "this is a new chat already"
    page._chat.open_chat(page._chat.chats[0].chat_id)
    assert page.composer.field.text() == "", "the question has moved"


def test_oldest_are_left_out_and_told_again(
    page: ChatView, stage: MonitorStage, qtbot: QtBot
) -> None:
    page.show()
    for number in range(3):
        talk(page._chat, stage.client, f"question {number}", "words " * 50)
    composer = page.composer
    assert composer.untold.isHidden()
    composer.edit.setPlainText("and now?")
    qtbot.waitUntil(lambda: stage.client.count(CountTokens) == 1)
    answer_count(stage.client, 4200)
    assert composer.leave_out_button.isVisible()
    composer.leave_out_button.click()
    assert composer.untold_text.text() == (
        "The model is not told the oldest 2 messages of this chat."
    )
    qtbot.waitUntil(lambda: stage.client.count(CountTokens) == 2)
    told = stage.client.last(CountTokens).conversation
    assert [each.text for each in told if each.role is Role.USER] == [
        "question 1",
        "question 2",
        "and now?",
    ]
    composer.tell_all_button.click()
    assert composer.untold.isHidden()


def test_nothing_can_be_left_out_where_all_is(page: ChatView, stage: MonitorStage) -> None:
    composer = page.composer
    composer.show_chat(4, 4)
    assert composer.leave_out_button.isHidden()
    assert not composer.new_chat_button.isHidden()
    composer.show_chat(0, 0)
    assert composer.new_chat_button.isHidden()


def test_summary_is_offered_read_and_taken_back(
    page: ChatView, stage: MonitorStage, qtbot: QtBot
) -> None:
    composer = page.composer
    with qtbot.waitSignal(composer.shorten_wanted):
        composer.shorten_button.click()
    page.show()
    composer.show_context(10, 100, 120)
    composer.show_chat(6, 0)
    assert composer.shorten_button.isVisible()
    composer.show_shortening()
    assert not composer.choices.isVisible()
    assert composer.meter.text() == ChatWords.SHORTENING
    composer.show_chat(6, 2, "They greeted.")
    assert composer.untold_text.text() == chat_phrases.summed_up(2)
    assert not composer.summary_text.isVisible()
    composer.summary_button.click()
    assert composer.summary_text.isVisible()
    assert composer.summary_text.text() == "They greeted."
    composer.show_chat(6, 2)
    assert not composer.summary_text.isVisible()
    assert composer.untold_text.text() == chat_phrases.untold(2)


def test_summary_that_fails_is_told(page: ChatView) -> None:
    page.show()
    page._chat.shortening.failed.emit(None)
    assert ChatWords.SHORTEN_NOTHING in page.notice.text()


@pytest.mark.parametrize(
    "direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft]
)
def test_choices_of_a_narrow_composer_go_on_in_the_next_line(
    composer: Composer, qtbot: QtBot, direction: Qt.LayoutDirection
) -> None:
    composer.setLayoutDirection(direction)
    composer.show_context(120, 4096, 5000)
    composer.show_chat(4, 0)
    buttons = [
        composer.shorten_button,
        composer.leave_out_button,
        composer.new_chat_button,
        composer.longer_button,
    ]

    def is_whole() -> bool:
        rooms = [button.geometry() for button in buttons]
        return all(
            room.width() >= button.sizeHint().width() and composer.choices.rect().contains(room)
            for room, button in zip(rooms, buttons, strict=True)
        )

    heights = []
    for width in (700, 400, 240):
        composer.resize(width, 500)
        qtbot.waitUntil(lambda width=width: composer.choices.width() <= width and is_whole())  # type: ignore[misc]
        heights.append(composer.choices.height())
    assert heights[0] < heights[1] < heights[2]
