"""Answers that go on after they were cut."""

from pathlib import Path

import msgspec
import pytest

from app.state.chat import ChatState
from app.state.chat_values import AnswerEnd, Message
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.chat import FinishReason, Role
from runtime.protocol.messages import (
    CommandFailed,
    GenerationCancelled,
    GenerationFinished,
    StartGeneration,
    TokensGenerated,
)
from tests.support.fake_client import FakeClient
from tests.support.unnarrowed import now
from tests.support.window_values import some_error, some_stats


def tell(client: FakeClient, text: str, *token_ids: int, thinking: str = "") -> None:
    client.answer(
        TokensGenerated(
            request_id=client.last(StartGeneration).request_id,
            token_ids=list(token_ids),
            text=text,
            thinking=thinking,
        )
    )


def finish(
    client: FakeClient, reason: FinishReason = FinishReason.LENGTH, thinking_s: float = 0.0
) -> None:
    stats = msgspec.structs.replace(some_stats(), thinking_s=thinking_s)
    request_id = client.last(StartGeneration).request_id
    client.answer(GenerationFinished(request_id=request_id, reason=reason, stats=stats))


def cut(chat: ChatState, client: FakeClient) -> Message:
    """Have an answer cut at its limit."""
    assert chat.ask("one")
    tell(client, "Par", 5, 6, thinking="hm")
    finish(client, thinking_s=2.0)
    return chat.messages[-1]


def test_cut_answer_goes_on_from_its_ids_and_is_told_anew(
    chat: ChatState, client: FakeClient
) -> None:
    before = cut(chat, client)
    assert now(chat.can_continue)
    assert chat.continue_answer()
    assert not now(chat.can_continue)
    last = client.last(StartGeneration).conversation[-1]
    assert (last.role, last.text, last.token_ids) == (Role.ASSISTANT, "Par", [5, 6])
    assert last.thinking == "hm"
    growing = chat.messages[-1]
    assert (growing.text, growing.end) == ("Par", AnswerEnd.GROWING)
    tell(client, "Paris", 7, thinking="hm")
    tell(client, ".", 8)
    finish(client, FinishReason.STOP, thinking_s=0.5)
    ended = chat.messages[-1]
    assert (ended.text, ended.thinking) == ("Paris.", "hm")
    assert ended.token_ids == (5, 6, 7, 8)
    assert ended.end is AnswerEnd.FINISHED
    assert ended.message_id == before.message_id
    assert ended.stats is not None
    assert ended.stats.thinking_s == 2.5
    assert not now(chat.can_continue)
    assert not chat.continue_answer()


def test_answer_that_does_not_go_on_stays_as_it_was(chat: ChatState, client: FakeClient) -> None:
    before = cut(chat, client)
    chat.continue_answer()
    request_id = client.last(StartGeneration).request_id
    client.answer(CommandFailed(request_id=request_id, error=some_error()))
    assert chat.messages[-1] == before
    assert now(chat.can_continue)


def test_answer_stopped_again_can_go_on_again(chat: ChatState, client: FakeClient) -> None:
    cut(chat, client)
    chat.continue_answer()
    tell(client, "Pari", 7)
    request_id = client.last(StartGeneration).request_id
    client.answer(GenerationCancelled(request_id=request_id, stats=some_stats()))
    assert chat.messages[-1].end is AnswerEnd.STOPPED
    assert chat.messages[-1].token_ids == (5, 6, 7)
    assert chat.continue_answer()


def test_answer_cut_off_while_it_goes_on_is_kept(
    chat: ChatState,
    client: FakeClient,
    ready_session: Session,
    settings: SettingsState,
    tmp_path: Path,
) -> None:
    cut(chat, client)
    chat.continue_answer()
    again = ChatState(tmp_path / "chats.db", ready_session, settings)
    again.open_chat(again.chats[0].chat_id)
    assert (again.messages[-1].text, again.messages[-1].end) == ("Par", AnswerEnd.CUT_OFF)
    again.close()
    tell(client, "Pari", 7)
    client.crash()
    assert (chat.messages[-1].text, chat.messages[-1].end) == ("Pari", AnswerEnd.CUT_OFF)
    assert not now(chat.can_continue)


def test_answer_without_ids_of_this_model_goes_on_from_its_text_and_keeps_none(
    chat: ChatState, client: FakeClient
) -> None:
    before = cut(chat, client)
    assert chat.chat_id is not None
    # As if another model had written it: its ids mean other text.
    chat._store._run(
        lambda connection: connection.execute("UPDATE messages SET model_name='other'")
    )
    chat.open_chat(chat.chat_id)
    assert chat.messages[-1].token_ids == before.token_ids
    chat.continue_answer()
    assert client.last(StartGeneration).conversation[-1].token_ids == []
    tell(client, "Paris", 7)
    finish(client, FinishReason.STOP)
    assert (chat.messages[-1].text, chat.messages[-1].token_ids) == ("Paris", ())


@pytest.mark.parametrize(("used_tokens", "can_continue"), [(4096, False), (2000, True)])
def test_answer_at_the_end_of_the_context_goes_on_where_there_is_room(
    chat: ChatState, client: FakeClient, used_tokens: int, can_continue: bool
) -> None:
    chat.ask("one")
    tell(client, "Par", 5)
    request_id = client.last(StartGeneration).request_id
    client.answer(
        GenerationFinished(
            request_id=request_id,
            reason=FinishReason.CONTEXT_FULL,
            stats=some_stats(used_tokens=used_tokens),
        )
    )
    assert now(chat.can_continue) is can_continue


def test_question_and_empty_chat_cannot_go_on(chat: ChatState, client: FakeClient) -> None:
    assert not chat.continue_answer()
    chat.ask("one")
    request_id = client.last(StartGeneration).request_id
    client.answer(CommandFailed(request_id=request_id, error=some_error()))
    assert [message.role for message in chat.messages] == [Role.USER]
    assert not chat.continue_answer()
