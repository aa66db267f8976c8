"""Messages of any length: what is drawn, how it breaks, and how long the window is kept waiting."""

import dataclasses

import msgspec
import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QScrollBar
from pytestqt.qtbot import QtBot

from app.state.chat_values import AnswerEnd, Message
from app.theme.palette import DARK, LIGHT
from app.views.answer_view import AnswerView
from app.views.message_list import MAX_DRAWN_MESSAGES, MessageList
from app.views.plain_text import PIECE_CHARACTERS, PlainView
from app.views.question_view import MAX_BUBBLE_WIDTH, QuestionView
from app.views.table_view import TableView
from runtime.protocol.chat import Role
from tests.support.loop_gaps import LoopGaps
from tests.support.window_values import some_forecast, some_stats

MAX_GAP_S = 0.1
"""Stated by the field cases; asserted at three times its value."""
LONG_TABLE = "| a | b | c | d |\n|---|---|---|---|\n" + "".join(
    f"| {number} | some words here | more *words* | {number * number} |\n" for number in range(500)
)
LONG_LIST = "".join(f"- item number {number} with some words\n" for number in range(600))


def question(text: str, message_id: int = 1) -> Message:
    return Message(message_id, Role.USER, text)


def answer(
    text: str, message_id: int = 2, end: AnswerEnd = AnswerEnd.FINISHED, thinking: str = ""
) -> Message:
    return Message(message_id, Role.ASSISTANT, text, end=end, thinking=thinking)


@pytest.fixture
def messages(qtbot: QtBot) -> MessageList:
    view = MessageList(LIGHT, lambda _stats: "")
    qtbot.addWidget(view)
    view.resize(800, 600)
    view.show()
    return view


def question_view(messages: MessageList) -> QuestionView:
    view = messages.views()[0]
    assert isinstance(view, QuestionView)
    return view


def answer_view(messages: MessageList) -> AnswerView:
    view = messages.views()[-1]
    assert isinstance(view, AnswerView)
    return view


def pieces_of(view: QuestionView) -> list[str]:
    pieces = view.text_view.body.findChildren(PlainView)
    return [piece.toPlainText() for piece in pieces if not piece.isHidden()]


@pytest.mark.parametrize("text", ["z" * 300, "https://example.org/" + "path" * 80])
def test_unbroken_word_breaks_inside_the_bubble(
    messages: MessageList, qtbot: QtBot, text: str
) -> None:
    messages.show_messages([question(text)], is_other_chat=True)
    qtbot.waitUntil(question_view(messages).isVisible)
    (piece,) = question_view(messages).text_view.body.findChildren(PlainView)
    assert piece.document().idealWidth() <= piece.viewport().width() <= MAX_BUBBLE_WIDTH
    assert piece.height() >= 3 * piece.fontMetrics().height()
    assert piece.toPlainText() == text


def test_short_question_has_a_narrow_bubble(messages: MessageList) -> None:
    messages.show_messages([question("Why?")], is_other_chat=True)
    view = question_view(messages)
    assert view.text_view.width() < 60
    assert view.text_view.fold_button.isHidden()


def test_long_question_is_folded_and_unfolds_to_all_of_it(
    messages: MessageList, qtbot: QtBot
) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    messages.show_messages([question(text)], is_other_chat=True)
    view = question_view(messages)
    qtbot.waitUntil(view.isVisible)
    assert len("".join(pieces_of(view))) <= PIECE_CHARACTERS + 1
    assert view.text_view.fold_button.isVisible()
    view.text_view.fold_button.click()
    qtbot.waitUntil(lambda: messages.is_drawn, timeout=20_000)
    qtbot.waitUntil(lambda: "\n".join(pieces_of(view)) == text)
    view.text_view.fold_button.click()
    qtbot.waitUntil(lambda: len(pieces_of(view)) == 1)


@pytest.mark.parametrize(
    "text", ["some words and so on " * 50_000, "z" * 1_000_000, "q\n" * 500_000]
)
def test_question_of_a_million_characters_costs_no_more_than_a_short_one(
    messages: MessageList, qtbot: QtBot, text: str
) -> None:
    gaps = LoopGaps()
    gaps.start()
    messages.show_messages([question(text)], is_other_chat=True)
    qtbot.wait(100)
    assert gaps.stop() < 3 * MAX_GAP_S


@pytest.mark.parametrize("text", [LONG_TABLE, LONG_LIST], ids=["table", "list"])
def test_long_answer_opened_at_once_is_drawn_in_slices(
    messages: MessageList, qtbot: QtBot, text: str
) -> None:
    gaps = LoopGaps()
    gaps.start()
    messages.show_messages([question("q"), answer(text)], is_other_chat=True)
    qtbot.waitUntil(lambda: messages.is_drawn, timeout=20_000)
    qtbot.wait(50)
    assert gaps.stop() < 3 * MAX_GAP_S
    assert answer_view(messages).body.source() == text


@pytest.mark.parametrize("text", [LONG_TABLE, LONG_LIST], ids=["table", "list"])
def test_long_answer_growing_is_drawn_in_slices(
    messages: MessageList, qtbot: QtBot, text: str
) -> None:
    start = [question("q"), answer("", end=AnswerEnd.GROWING)]
    messages.show_messages(start, is_other_chat=True)
    longest_s = 0.0
    for size in range(0, len(text), 400):
        gaps = LoopGaps()
        gaps.start()
        messages.grow(answer(text[:size], end=AnswerEnd.GROWING))
        qtbot.wait(1)
        longest_s = max(longest_s, gaps.stop())
    messages.grow(answer(text))
    qtbot.waitUntil(lambda: messages.is_drawn, timeout=20_000)
    assert longest_s < 3 * MAX_GAP_S


def test_long_chat_is_drawn_from_its_end_and_ends_there(
    messages: MessageList, qtbot: QtBot
) -> None:
    chat = [
        made
        for number in range(100)
        for made in (
            question(f"q{number}", 2 * number),
            answer("Some words.\n\n- a\n- b\n\n```c\nint x;\n```\n" * 5, 2 * number + 1),
        )
    ]
    gaps = LoopGaps()
    gaps.start()
    messages.show_messages(chat, is_other_chat=True)
    assert messages.views()[-1].message == chat[-1]
    qtbot.waitUntil(lambda: messages.is_drawn, timeout=20_000)
    assert gaps.stop() < 3 * MAX_GAP_S
    assert [view.message for view in messages.views()] == chat[-MAX_DRAWN_MESSAGES:]
    bar: QScrollBar = messages.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())


def some_chat(number: int) -> list[Message]:
    return [
        made
        for each in range(number)
        for made in (
            question(f"q{each}", 2 * each),
            answer(f"Answer {each}.\n\n" * 8, 2 * each + 1),
        )
    ]


def test_palette_changed_keeps_the_place(messages: MessageList, qtbot: QtBot) -> None:
    messages.show_messages(some_chat(15), is_other_chat=True)
    bar = messages.verticalScrollBar()
    qtbot.waitUntil(lambda: messages.is_drawn and bar.value() == bar.maximum() > 1000)
    qtbot.wait(400)
    bar.setValue(bar.maximum() // 2)
    maximum, value = bar.maximum(), bar.value()
    messages.put_away()
    assert messages.views() == []
    messages.show_palette(DARK)
    qtbot.waitUntil(lambda: messages.is_drawn and bar.maximum() == maximum)
    assert bar.value() == value


def test_earlier_messages_come_above_what_is_read(messages: MessageList, qtbot: QtBot) -> None:
    messages.show_messages(some_chat(60), is_other_chat=True)
    bar = messages.verticalScrollBar()
    qtbot.waitUntil(lambda: messages.is_drawn and bar.value() == bar.maximum() > 1000)
    qtbot.wait(400)
    bar.setValue(100)
    distance = bar.maximum() - bar.value()
    maximum = bar.maximum()
    messages._earlier.click()
    qtbot.waitUntil(lambda: len(messages.views()) == 2 * MAX_DRAWN_MESSAGES)
    qtbot.waitUntil(lambda: messages.is_drawn and bar.maximum() > maximum * 1.5)
    qtbot.wait(50)
    assert bar.maximum() - bar.value() == pytest.approx(distance, abs=2)
    ids = [view.message.message_id for view in messages.views()]
    assert ids == list(range(40, 120))
    column = messages._column
    assert [column.indexOf(view) for view in messages.views()] == list(range(1, 81))


def test_answer_replaced_in_the_middle_stands_in_its_place(
    messages: MessageList, qtbot: QtBot
) -> None:
    chat = some_chat(4)
    messages.show_messages(chat, is_other_chat=True)
    qtbot.waitUntil(lambda: messages.is_drawn)
    changed = [*chat[:3], answer("other", 900), question("more", 901), answer("end", 902)]
    messages.show_messages(changed, is_other_chat=False)
    qtbot.waitUntil(lambda: messages.is_drawn)
    assert [view.message for view in messages.views()] == changed
    column = messages._column
    assert [column.indexOf(view) for view in messages.views()] == list(range(1, 7))


def test_wide_table_is_moved_sideways_and_its_words_stay_whole(
    messages: MessageList, qtbot: QtBot
) -> None:
    head = "|" + "|".join(f"column{number}" for number in range(50)) + "|\n"
    row = "|" + "|".join(f"value{number}" for number in range(50)) + "|\n"
    text = head + "|" + "---|" * 50 + "\n" + row * 3
    messages.show_messages([question("q"), answer(text)], is_other_chat=True)
    qtbot.waitUntil(lambda: messages.is_drawn)
    (table,) = messages.findChildren(TableView)
    bar = table.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 1000)
    qtbot.waitUntil(bar.isVisible)
    one_line = 50
    assert all(view.height() < 3 * one_line for view in table.views())
    bar.setValue(bar.maximum())
    last = table.views()[0]
    assert last.mapTo(table.viewport(), last.rect().topRight()).x() <= table.viewport().width()


def test_narrow_table_needs_no_scroll_bar(messages: MessageList, qtbot: QtBot) -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    messages.show_messages([question("q"), answer(text)], is_other_chat=True)
    qtbot.waitUntil(lambda: messages.is_drawn)
    (table,) = messages.findChildren(TableView)
    (view,) = table.views()
    qtbot.waitUntil(lambda: table.viewport().height() == view.height())
    assert table.horizontalScrollBar().maximum() == 0


def test_thinking_of_any_length_opens_at_once(messages: MessageList, qtbot: QtBot) -> None:
    thought = "z" * 5000 + " and so on" * 20_000
    messages.show_messages([question("q"), answer("Yes.", thinking=thought)], is_other_chat=True)
    view = answer_view(messages)
    assert view._fold is not None
    gaps = LoopGaps()
    gaps.start()
    view._fold.click()
    qtbot.waitUntil(lambda: messages.is_drawn, timeout=20_000)
    assert gaps.stop() < 3 * MAX_GAP_S


def test_thinking_is_folded_above_the_answer_and_not_copied(
    messages: MessageList, qtbot: QtBot
) -> None:
    growing = answer("", end=AnswerEnd.GROWING, thinking="hm")
    messages.show_messages([question("q"), growing], is_other_chat=True)
    view = answer_view(messages)
    fold = view._fold
    assert fold is not None
    assert fold.text() == "Thinking"
    assert view._thinking is None
    fold.click()
    shown = view._thinking
    assert shown is not None
    messages.grow(answer("", end=AnswerEnd.GROWING, thinking="hm, so"))
    qtbot.waitUntil(lambda: messages.is_drawn)
    assert "hm, so" in "".join(each.toPlainText() for each in shown.findChildren(PlainView))
    messages.grow(answer("Yes", end=AnswerEnd.GROWING, thinking="hm, so"))
    assert fold.text() == "Thought"
    stats = msgspec.structs.replace(some_stats(), thinking_s=3.2)
    ended = dataclasses.replace(answer("Yes.", thinking="hm, so"), stats=stats)
    messages.grow(ended)
    assert fold.text().replace("\N{NO-BREAK SPACE}", " ") == "Thought for 3.2 s"
    assert view._column.indexOf(fold) < view._column.indexOf(view.body)
    view._on_copy_clicked()
    assert QGuiApplication.clipboard().text() == "Yes."
    fold.click()
    assert not shown.isVisible()


def test_answer_far_from_its_forecast_says_so(messages: MessageList) -> None:
    predicted = msgspec.structs.replace(some_forecast(), decode_tokens_per_s=30.0)
    stats = msgspec.structs.replace(some_stats(predicted=predicted), usual_tokens_per_s=28.0)
    ended = dataclasses.replace(answer("Yes."), stats=stats)
    messages.show_messages([question("q"), ended], is_other_chat=True)
    line = answer_view(messages)._line
    assert "This was 29 % slower than the forecast, 30.0 tokens/s." in line.text()
    assert "24 % slower than this model usually is here, 28.0 tokens/s" in line.text()
    assert "usual here are" in line.toolTip()
    fine = dataclasses.replace(answer("Yes."), stats=some_stats(predicted=some_forecast()))
    messages.show_messages([question("q"), fine], is_other_chat=True)
    assert "forecast" not in answer_view(messages)._line.text()


def test_answer_stopped_while_thinking_says_so(messages: MessageList) -> None:
    stopped = answer("", end=AnswerEnd.STOPPED, thinking="hm")
    messages.show_messages([question("q"), stopped], is_other_chat=True)
    fold = answer_view(messages)._fold
    assert fold is not None
    assert fold.text() == "Stopped while thinking"


@pytest.mark.parametrize("thinking", ["", "hm"])
@pytest.mark.parametrize(
    ("end", "said"),
    [
        (AnswerEnd.FINISHED, "The model ended without an answer. Write another one"),
        (AnswerEnd.LENGTH, "The limit of tokens per answer was reached before the answer began."),
        (AnswerEnd.STOPPED, ""),
        (AnswerEnd.CUT_OFF, ""),
    ],
)
def test_answer_without_words_says_so_and_what_to_do(
    messages: MessageList, end: AnswerEnd, said: str, thinking: str
) -> None:
    growing = answer("", end=AnswerEnd.GROWING, thinking=thinking)
    messages.show_messages([question("q"), growing], is_other_chat=True)
    view = answer_view(messages)
    line = view._without_answer
    assert line.isHidden()
    messages.grow(answer("\n", end=end, thinking=thinking))
    assert line.isHidden() == (not said)
    assert line.text().startswith(said)
    assert not view._actions.isHidden()
    messages.grow(answer("Yes.", end=end, thinking=thinking))
    assert line.isHidden()


def test_answer_without_words_that_goes_on_says_no_more_that_it_ended(
    messages: MessageList,
) -> None:
    ended = answer("", end=AnswerEnd.LENGTH, thinking="hm")
    messages.show_messages([question("q"), ended], is_other_chat=True)
    line = answer_view(messages)._without_answer
    assert not line.isHidden()
    messages.grow(answer("", end=AnswerEnd.GROWING, thinking="hm"))
    assert line.isHidden()


def test_answer_that_is_only_a_finished_thought_was_not_stopped(messages: MessageList) -> None:
    messages.show_messages([question("q"), answer("", thinking="hm")], is_other_chat=True)
    fold = answer_view(messages)._fold
    assert fold is not None
    assert fold.text() == "Thought"


def test_later_rows_that_are_wider_widen_the_whole_table(
    messages: MessageList, qtbot: QtBot
) -> None:
    text = "| a | b |\n|---|---|\n" + "".join(
        f"| {10 ** (each // 20)} | x |\n" for each in range(200)
    )
    messages.show_messages([question("q"), answer(text)], is_other_chat=True)
    (table,) = messages.findChildren(TableView)
    qtbot.waitUntil(lambda: messages.is_drawn and len(table.views()) > 3)
    qtbot.waitUntil(lambda: len({view.width() for view in table.views()}) == 1)
    first, last = table.views()[0], table.views()[-1]
    assert "1000000000" in last.toPlainText()
    one_line = last.fontMetrics().height()
    num_rows = 50
    assert last.height() < num_rows * 2 * one_line
    assert first.width() > 10 * last.fontMetrics().horizontalAdvance("0")
