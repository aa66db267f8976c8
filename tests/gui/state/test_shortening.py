"""A summary in place of the beginning of a chat, with a model that the test plays."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.state.chat_request import conversation_of
from app.state.chat_values import Message
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.shortening import Shortened, transcript_of
from runtime.protocol.chat import FinishReason, Role
from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import (
    CancelRequest,
    CommandFailed,
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    StartGeneration,
    TokensGenerated,
)
from tests.gui.state.test_untold import fill
from tests.support.fake_client import FakeClient
from tests.support.played_answers import finish, talk, write
from tests.support.window_values import some_error, some_stats


@pytest.fixture
def full_chat(chat: ChatState, client: FakeClient, qtbot: QtBot) -> ChatState:
    """Three turns and a question for which there is no room."""
    for number in range(3):
        talk(chat, client, f"question {number}", "words " * 50)
    fill(chat, client, qtbot, 4200)
    return chat


def summing(client: FakeClient) -> int:
    """Return the id of the request that a summary is written for."""
    return client.last(StartGeneration).request_id


def say(client: FakeClient, *texts: str) -> None:
    request_id = summing(client)
    client.answer(
        GenerationStarted(
            request_id=request_id, prompt_tokens=9, reused_tokens=0, context_tokens=4096
        )
    )
    for text in texts:
        client.answer(TokensGenerated(request_id=request_id, token_ids=[5], text=text))


def end(client: FakeClient) -> None:
    client.answer(
        GenerationFinished(request_id=summing(client), reason=FinishReason.STOP, stats=some_stats())
    )


def texts(client: FakeClient) -> Sequence[str]:
    return [message.text for message in client.last(StartGeneration).conversation]


def test_summary_stands_for_what_is_left_out(
    full_chat: ChatState,
    client: FakeClient,
    ready_session: Session,
    settings: SettingsState,
    tmp_path: Path,
) -> None:
    chat = full_chat
    assert chat.shorten()
    assert chat.is_answering
    assert not chat.can_ask
    assert not chat.shorten()
    (asked,) = texts(client)
    assert "Person: question 0" in asked
    assert "question 1" not in asked
    sampling = client.last(StartGeneration).sampling
    assert (sampling.temperature, sampling.max_tokens > 0) == (0.0, True)
    say(client, "They greeted", " each other. ")
    end(client)
    assert not chat.is_answering
    assert chat.num_untold == 2
    assert chat.summary == "They greeted each other."
    assert len(chat.messages) == 6
    assert chat.ask("and now?")
    first, *others = texts(client)
    assert first == "(Summary of our conversation before: They greeted each other.)\n\nquestion 1"
    assert not any("Summary" in text for text in others)
    write(client, "yes", 9)
    finish(client)
    other = ChatState(tmp_path / "chats.db", ready_session, settings)
    assert chat.chat_id is not None
    other.open_chat(chat.chat_id)
    assert other.summary == "They greeted each other."
    other.new_chat()
    assert other.summary == ""
    other.close()
    chat.tell_all()
    assert chat.summary == ""
    chat.ask("all?")
    assert texts(client)[0] == "question 0"


def test_summary_of_a_summary_keeps_what_it_said(
    full_chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    full_chat.shorten()
    say(client, "They greeted.")
    end(client)
    fill(full_chat, client, qtbot, 4300)
    assert full_chat.shorten()
    assert "Before that: They greeted." in texts(client)[0]
    assert "Person: question 1" in texts(client)[0]


def test_earlier_question_asked_again_is_told_without_the_summary(
    full_chat: ChatState, client: FakeClient
) -> None:
    full_chat.shorten()
    say(client, "They greeted.")
    end(client)
    full_chat.edit_question(full_chat.messages[0].message_id, "another beginning")
    assert texts(client) == ["another beginning"]


def test_question_after_the_summary_asked_again_keeps_it(
    full_chat: ChatState, client: FakeClient
) -> None:
    full_chat.shorten()
    say(client, "They greeted.")
    end(client)
    full_chat.edit_question(full_chat.messages[4].message_id, "in other words")
    assert [text.partition("\n\n")[2] or text for text in texts(client)] == [
        "question 1",
        "words " * 50,
        "in other words",
    ]
    assert texts(client)[0].startswith("(Summary")


def test_stopped_summary_changes_nothing(full_chat: ChatState, client: FakeClient) -> None:
    full_chat.shorten()
    request_id = summing(client)
    full_chat.stop()
    assert client.last(CancelRequest).target_request_id == request_id
    client.answer(GenerationCancelled(request_id=request_id, stats=some_stats()))
    assert not full_chat.is_answering
    assert full_chat.num_untold == 0


def test_summary_without_a_word_or_with_an_error_changes_nothing(
    full_chat: ChatState, client: FakeClient
) -> None:
    told: list[ErrorReport | None] = []
    full_chat.shortening.failed.connect(told.append)
    full_chat.shorten()
    say(client, " \n")
    end(client)
    full_chat.shorten()
    client.answer(CommandFailed(request_id=summing(client), error=some_error()))
    assert told == [None, some_error()]
    assert full_chat.num_untold == 0
    assert full_chat.summary == ""


def test_runtime_that_ends_ends_the_summary(full_chat: ChatState, client: FakeClient) -> None:
    full_chat.shorten()
    client.crash()
    assert not full_chat.is_answering
    assert not full_chat.shorten()


def test_summary_of_a_chat_that_is_no_longer_open_is_kept_with_it(
    full_chat: ChatState, client: FakeClient
) -> None:
    chat_id = full_chat.chat_id
    assert chat_id is not None
    full_chat.shorten()
    full_chat.new_chat()
    say(client, "They greeted.")
    end(client)
    assert full_chat.summary == ""
    full_chat.open_chat(chat_id)
    assert full_chat.summary == "They greeted."


def test_nothing_is_summed_up_where_there_is_nothing(
    chat: ChatState, client: FakeClient, session: Session
) -> None:
    assert not chat.shorten()
    asked = Shortened(1, 2, "")
    assert chat.shortening.begin(asked, [], 4.0)
    assert not chat.shortening.begin(asked, [], 4.0)
    say(client, "x")
    late = summing(client)
    client.crash()
    chat.shortening._on_event(TokensGenerated(request_id=late, token_ids=[1], text="late"))
    assert not chat.shortening.is_running
    assert not chat.shortening.begin(asked, [], 4.0)


def test_summary_that_cannot_be_asked_for_is_refused(
    full_chat: ChatState, client: FakeClient, ready_session: Session
) -> None:
    full_chat.ask("busy")
    assert not full_chat.shortening.begin(Shortened(1, 2, ""), [], 4.0)
    assert not full_chat.shortening.is_running


def test_transcript_that_is_too_long_loses_its_middle() -> None:
    messages = [Message(1, Role.USER, "a" * 100), Message(2, Role.ASSISTANT, "b" * 100)]
    text = transcript_of(messages, "before", 101)
    assert len(text) <= 101
    assert text.startswith("Before that: before\n\nPerson: aaa")
    assert "[…]" in text
    assert text.endswith("bbb")
    assert transcript_of(messages, "", 10_000).count("\n\n") == 1
    assert len(transcript_of(messages, "", 2)) < 10


def test_conversation_without_a_summary_is_as_it_was() -> None:
    (message,) = conversation_of([Message(1, Role.USER, "hello")], "", "m")
    assert message.text == "hello"
