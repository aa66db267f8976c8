"""What of a long chat the model is not told, so that there is room."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.state.chat_request import told_from_id, told_of
from app.state.chat_values import Message
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.chat import Role
from runtime.protocol.messages import StartGeneration
from tests.gui.state.test_prompt_count import answer_count, rest
from tests.support.fake_client import FakeClient
from tests.support.played_answers import finish, talk, write


def some_talk(*lengths: int) -> list[Message]:
    """Return questions and answers in turn, of so many characters, with ids 10, 20, 30…"""
    roles = (Role.USER, Role.ASSISTANT)
    return [
        Message(10 * (number + 1), roles[number % 2], "x" * length)
        for number, length in enumerate(lengths)
    ]


TALK = some_talk(100, 100, 100, 100)


@pytest.mark.parametrize(
    ("first_id", "told"),
    [(0, 4), (10, 4), (11, 2), (20, 2), (30, 2), (31, 0), (99, 0)],
)
def test_messages_are_told_from_a_question_on(first_id: int, told: int) -> None:
    assert len(told_of(TALK, first_id, has_more=True)) == told
    assert len(told_of(TALK, first_id)) == max(2, told), "the last question is always told"


def test_nothing_of_nothing_is_told() -> None:
    assert list(told_of([], 7)) == []


@pytest.mark.parametrize(
    ("question", "num_tokens", "context_tokens", "first_id"),
    [
        ("x" * 100, 5000, 5000, 30),
        ("x" * 100, 5000, 50_000, 10),
        ("x" * 400, 8000, 5600, 41),
        ("x" * 10_000, 10_400, 1000, 41),
    ],
)
def test_as_much_is_told_as_leaves_room(
    question: str, num_tokens: int, context_tokens: int, first_id: int
) -> None:
    assert told_from_id(TALK, question, num_tokens, context_tokens) == first_id


@given(
    lengths=st.lists(st.integers(0, 5000), min_size=1, max_size=20),
    question=st.integers(0, 5000),
    num_tokens=st.integers(1, 100_000),
    context_tokens=st.integers(1, 100_000),
)
def test_leaving_out_always_makes_room_where_there_was_none(
    lengths: list[int], question: int, num_tokens: int, context_tokens: int
) -> None:
    talk = some_talk(*lengths)
    first_id = told_from_id(talk, "y" * question, num_tokens, context_tokens)
    told = told_of(talk, first_id, has_more=True)
    if num_tokens >= context_tokens and sum(lengths) + question:
        assert len(told) < len(talk)
    taken = sum(len(message.text) for message in told) + question
    share = taken / max(1, sum(lengths) + question)
    assert not told or share * num_tokens <= context_tokens


def fill(chat: ChatState, client: FakeClient, qtbot: QtBot, num_tokens: int) -> None:
    """Write a question and have it counted."""
    chat.set_draft("and now?")
    rest(chat, qtbot)
    answer_count(client, num_tokens)


def test_what_is_left_out_stays_so_and_can_be_told_again(
    chat: ChatState,
    client: FakeClient,
    qtbot: QtBot,
    ready_session: Session,
    settings: SettingsState,
    tmp_path: Path,
) -> None:
    for number in range(3):
        talk(chat, client, f"question {number}", "words " * 50)
    fill(chat, client, qtbot, 4200)
    assert chat.num_untold == 0
    with qtbot.waitSignal(chat.asking_changed):
        chat.leave_out_oldest()
    assert chat.num_untold == 2
    assert chat.ask("and now?")
    assert client.last(StartGeneration).conversation[0].text == "question 1"
    write(client, "yes", 9)
    finish(client)
    assert chat.num_untold == 2
    other = ChatState(tmp_path / "chats.db", ready_session, settings)
    assert chat.chat_id is not None
    other.open_chat(chat.chat_id)
    assert other.num_untold == 2
    other.new_chat()
    assert other.num_untold == 0
    other.close()
    chat.tell_all()
    assert chat.num_untold == 0
    chat.ask("all?")
    assert client.last(StartGeneration).conversation[0].text == "question 0"


def test_nothing_is_left_out_without_a_chat_or_a_count(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    chat.leave_out_oldest()
    chat.tell_all()
    fill(chat, client, qtbot, 5000)
    chat.leave_out_oldest()
    assert chat.num_untold == 0
    talk(chat, client, "one", "first")
    chat.leave_out_oldest()
    assert chat.num_untold == 0, "not counted"
