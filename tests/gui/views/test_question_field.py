"""A long text goes with a question without being edited; a too long one is refused in words."""

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.views.composer import Composer
from app.views.question_field import (
    MAX_EDITED_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    QuestionField,
)
from tests.support.loop_gaps import LoopGaps

MAX_GAP_S = 0.1
LONG = "some words and so on " * 2000


def paste(field: QuestionField, text: str) -> None:
    data = QMimeData()
    data.setText(text)
    field.edit.insertFromMimeData(data)


def test_short_paste_is_edited(composer: Composer) -> None:
    paste(composer.field, "a word")
    assert composer.edit.toPlainText() == "a word"
    assert composer.field.kept_text() == ""


def test_long_paste_is_kept_beside_and_sent_with_the_question(
    composer: Composer, qtbot: QtBot
) -> None:
    QTest.keyClicks(composer.edit, "What is this?")
    with qtbot.waitSignal(composer.changed) as changed:
        paste(composer.field, LONG)
    assert composer.edit.toPlainText() == "What is this?"
    assert changed.args == [f"What is this?\n\n{LONG}"]
    assert composer.send_button.isEnabled()
    with qtbot.waitSignal(composer.sent) as sent:
        QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent.args == [f"What is this?\n\n{LONG}".strip()]


def test_second_long_paste_is_added_to_the_first(composer: Composer) -> None:
    paste(composer.field, LONG)
    paste(composer.field, LONG)
    assert composer.field.text() == f"{LONG}\n\n{LONG}"


def test_kept_text_can_be_taken_out(composer: Composer) -> None:
    paste(composer.field, LONG)
    assert composer.send_button.isEnabled()
    composer.field.take_out_button.click()
    assert composer.field.text() == ""
    assert not composer.send_button.isEnabled()


def test_too_long_paste_is_refused_in_words_until_something_is_typed(composer: Composer) -> None:
    paste(composer.field, "x" * (MAX_QUESTION_CHARACTERS + 1))
    assert composer.field.text() == ""
    assert "1,000,001 characters" in composer.field.refusal()
    assert "1,000,000 at most" in composer.field.refusal()
    QTest.keyClicks(composer.edit, "a")
    assert composer.field.refusal() == ""


def test_twice_half_a_million_and_one_is_refused(composer: Composer) -> None:
    half = "x" * (MAX_QUESTION_CHARACTERS // 2 + 1)
    paste(composer.field, half)
    paste(composer.field, half)
    assert composer.field.text() == half
    assert composer.field.refusal()


@pytest.mark.parametrize(
    "text",
    [
        "short",
        LONG,
        f"What is this?\n\n{LONG}",
        f"{LONG}\n\n{LONG}",
        "x" * (MAX_EDITED_CHARACTERS + 1),
        "\n\n" * MAX_EDITED_CHARACTERS,
    ],
)
def test_draft_shown_is_the_same_text(composer: Composer, text: str) -> None:
    composer.show_draft(text)
    assert composer.field.text() == text
    assert len(composer.edit.toPlainText()) <= MAX_EDITED_CHARACTERS
    composer.show_draft("")
    assert composer.field.text() == ""


@pytest.mark.parametrize("text", ["z" * MAX_QUESTION_CHARACTERS, "z\n" * 500_000, "z " * 500_000])
def test_pasting_a_million_characters_is_not_felt(
    composer: Composer, qtbot: QtBot, text: str
) -> None:
    gaps = LoopGaps()
    gaps.start()
    paste(composer.field, text)
    qtbot.wait(50)
    QTest.keyClicks(composer.edit, "why")
    qtbot.wait(50)
    assert gaps.stop() < 3 * MAX_GAP_S
    assert composer.field.text() == f"why\n\n{text}"
