"""Conversations with a runtime that the test plays."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.state.chat_values import AnswerEnd, ChatNotice
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.chat import FinishReason, GenerationStats, Role
from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import (
    CancelAccepted,
    CancelRequest,
    CommandFailed,
    GenerationCancelled,
    GenerationStarted,
    PrefillProgressed,
    StartGeneration,
    TokensGenerated,
)
from tests.support.fake_client import FakeClient
from tests.support.played_answers import asked_id, finish, talk, texts, write
from tests.support.unnarrowed import now
from tests.support.window_values import some_error, some_stats


class TestAsking:
    def test_question_and_answer_are_kept_with_ids_and_statistics(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot
    ) -> None:
        assert now(chat.can_ask)
        assert now(chat.chat_id) is None
        assert chat.title == ""
        assert chat.ask("What is the capital of France?")
        assert now(chat.is_answering)
        assert now(chat.is_answering_here)
        assert not now(chat.can_ask)
        assert chat.title == "What is the capital of France?"
        with qtbot.waitSignal(chat.answer_grew):
            write(client, "Par", 5)
        assert chat.messages[-1].text == "Par"
        assert chat.messages[-1].end is AnswerEnd.GROWING
        write(client, "is.", 6)
        with qtbot.waitSignal(chat.answer_ended):
            finish(client)
        last = chat.messages[-1]
        assert (last.text, last.token_ids, last.end) == ("Paris.", (5, 6), AnswerEnd.FINISHED)
        assert last.stats == some_stats()
        assert last.model_name == "tiny"
        assert chat.context_used_tokens == 120
        assert chat.context_tokens == 4096
        assert now(chat.can_ask)

    @pytest.mark.parametrize("text", ["", "  \n"])
    def test_nothing_is_not_asked(self, chat: ChatState, client: FakeClient, text: str) -> None:
        assert not chat.ask(text)
        assert client.count(StartGeneration) == 0

    def test_second_question_while_answering_is_refused(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        chat.ask("one")
        assert not chat.ask("two")
        assert not chat.regenerate()
        assert not chat.edit_question(chat.messages[0].message_id, "two")
        assert client.count(StartGeneration) == 1

    def test_follow_up_sends_the_ids_that_were_generated(
        self, chat: ChatState, client: FakeClient, settings: SettingsState
    ) -> None:
        settings.change(system_prompt=" Be brief. ")
        talk(chat, client, "one", "first")
        chat.ask("two")
        conversation = client.last(StartGeneration).conversation
        assert [(m.role, m.text, m.token_ids) for m in conversation] == [
            (Role.SYSTEM, "Be brief.", []),
            (Role.USER, "one", []),
            (Role.ASSISTANT, "first", [1, 2]),
            (Role.USER, "two", []),
        ]

    def test_prompt_progress_is_shown_until_the_first_token(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        now_s = [10.0]
        chat._writer._clock = lambda: now_s[0]
        chat.ask("one")
        request_id = asked_id(client)
        client.answer(
            GenerationStarted(
                request_id=request_id, prompt_tokens=100, reused_tokens=60, context_tokens=4096
            )
        )
        assert chat.prompt_progress == (0, 40)
        assert chat.prompt_left_s is None
        now_s[0] += 3.0
        client.answer(PrefillProgressed(request_id=request_id, done_tokens=20, total_tokens=40))
        assert chat.prompt_progress == (20, 40)
        assert chat.prompt_left_s == 3.0
        write(client, "x", 1)
        assert chat.prompt_progress is None
        assert chat.prompt_left_s is None

    def test_question_without_an_answer_is_replaced_by_the_next(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot
    ) -> None:
        chat.ask("too long")
        error = some_error()
        with qtbot.waitSignal(chat.failed) as failed:
            client.answer(CommandFailed(request_id=asked_id(client), error=error))
        assert failed.args == [error]
        assert texts(chat) == ["too long"]
        chat.ask("shorter")
        assert [m.text for m in client.last(StartGeneration).conversation] == ["shorter"]
        assert chat.messages[0].num_variants == 2

    def test_runtime_that_does_not_take_the_question_keeps_it(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot, ready_session: Session
    ) -> None:
        with qtbot.waitSignal(ready_session.failed):
            assert chat.ask("x" * (17 << 20))
        assert not now(chat.is_answering)
        assert len(chat.messages) == 1


class TestEndings:
    @pytest.mark.parametrize(
        ("reason", "end"),
        [
            (FinishReason.LENGTH, AnswerEnd.LENGTH),
            (FinishReason.CONTEXT_FULL, AnswerEnd.CONTEXT_FULL),
        ],
    )
    def test_answer_says_why_it_ended(
        self, chat: ChatState, client: FakeClient, reason: FinishReason, end: AnswerEnd
    ) -> None:
        chat.ask("one")
        write(client, "x", 1)
        finish(client, reason)
        assert chat.messages[-1].end is end

    def test_stopped_answer_keeps_what_had_arrived(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        chat.ask("one")
        write(client, "half", 1)
        chat.stop()
        cancel = client.last(CancelRequest)
        client.answer(CancelAccepted(request_id=cancel.request_id, was_running=True))
        client.answer(GenerationCancelled(request_id=asked_id(client), stats=some_stats()))
        assert chat.messages[-1].end is AnswerEnd.STOPPED
        assert chat.messages[-1].text == "half"

    def test_answer_stopped_before_its_first_token_leaves_the_question(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        chat.ask("one")
        client.answer(GenerationCancelled(request_id=asked_id(client), stats=some_stats()))
        assert texts(chat) == ["one"]
        assert chat.regenerate()
        assert [m.text for m in client.last(StartGeneration).conversation] == ["one"]

    def test_crash_keeps_the_partial_answer(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot
    ) -> None:
        chat.ask("one")
        write(client, "half", 1)
        with qtbot.waitSignal(chat.answer_ended):
            client.crash()
        assert chat.messages[-1].end is AnswerEnd.CUT_OFF
        assert chat.messages[-1].text == "half"
        assert chat.context_tokens == 0
        assert not now(chat.can_ask)

    def test_each_answer_is_measured_once_and_one_that_was_cut_off_not_at_all(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        measured: list[GenerationStats] = []
        chat.answer_measured.connect(measured.append)
        talk(chat, client, "one", "whole")
        assert measured == [some_stats()]
        chat.ask("two")
        write(client, "elsewhere", 3)
        chat.new_chat()
        finish(client)
        assert measured == [some_stats()] * 2
        chat.ask("three")
        write(client, "half", 4)
        client.crash()
        assert measured == [some_stats()] * 2

    def test_event_after_the_end_changes_nothing(self, chat: ChatState, client: FakeClient) -> None:
        chat._writer._on_event(TokensGenerated(request_id=1, token_ids=[1], text="late"))
        assert chat.messages == []
        chat.ask("one")
        chat._writer._on_event(CancelAccepted(request_id=1, was_running=False))
        assert now(chat.is_answering)

    def test_closing_saves_the_growing_answer(
        self,
        ready_session: Session,
        client: FakeClient,
        settings: SettingsState,
        tmp_path: Path,
    ) -> None:
        chat = ChatState(tmp_path / "chats.db", ready_session, settings)
        chat.ask("one")
        write(client, "half", 1)
        chat.close()
        again = ChatState(tmp_path / "chats.db", ready_session, settings)
        again.open_chat(again.chats[0].chat_id)
        assert again.messages[-1].text == "half"
        assert again.messages[-1].end is AnswerEnd.CUT_OFF
        again.close()

    def test_growing_answer_is_saved_while_it_grows(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot, tmp_path: Path
    ) -> None:
        from app.state.chat_store import ChatStore

        chat.ask("one")
        write(client, "half", 1)
        assert chat._writer._save_timer.interval() < 1000
        qtbot.waitUntil(lambda: not chat._writer._save_timer.isActive())
        other = ChatStore(tmp_path / "chats.db")
        assert chat.chat_id is not None
        assert other.messages(chat.chat_id)[-1].text == "half"
        other.close()


class TestVariants:
    def test_regenerated_answer_is_a_variant(self, chat: ChatState, client: FakeClient) -> None:
        assert not chat.regenerate()
        talk(chat, client, "one", "first")
        assert chat.regenerate()
        assert len(client.last(StartGeneration).conversation) == 1
        write(client, "second", 3)
        finish(client)
        last = chat.messages[-1]
        assert (last.text, last.variant_index, last.num_variants) == ("second", 1, 2)
        chat.show_variant(last.message_id, -1)
        assert texts(chat) == ["one", "first"]
        chat.show_variant(chat.messages[-1].message_id, -1)
        assert texts(chat) == ["one", "first"]

    def test_regenerated_answer_of_which_nothing_came_gives_way_to_the_one_before(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        talk(chat, client, "one", "first")
        for text in ("second", "third"):
            assert chat.regenerate()
            write(client, text, 3)
            finish(client)
        chat.show_variant(chat.messages[-1].message_id, -1)
        assert chat.regenerate()
        client.answer(GenerationCancelled(request_id=asked_id(client), stats=some_stats()))
        assert texts(chat) == ["one", "second"]
        assert (chat.messages[-1].variant_index, chat.messages[-1].num_variants) == (1, 3)
        assert chat.regenerate()
        client.crash()
        assert texts(chat) == ["one", "second"]

    def test_edited_question_begins_a_branch_and_the_old_one_stays(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        talk(chat, client, "one", "first")
        talk(chat, client, "two", "second")
        question = chat.messages[2]
        assert not chat.edit_question(question.message_id, " ")
        assert not chat.edit_question(12345, "three")
        assert chat.edit_question(question.message_id, "three")
        assert [m.text for m in client.last(StartGeneration).conversation] == [
            "one",
            "first",
            "three",
        ]
        chat.show_variant(chat.messages[2].message_id, -1)
        assert texts(chat) == ["one", "first", "three", ""], "not while the answer is written"
        write(client, "third", 4)
        finish(client)
        chat.show_variant(chat.messages[2].message_id, -1)
        assert texts(chat) == ["one", "first", "two", "second"]

    def test_variant_without_a_chat_does_nothing(self, chat: ChatState) -> None:
        chat.show_variant(1, 1)
        assert chat.messages == []


class TestNotices:
    def test_chats_that_cannot_be_saved_are_told_and_saved_later(
        self,
        ready_session: Session,
        client: FakeClient,
        settings: SettingsState,
        tmp_path: Path,
        qtbot: QtBot,
    ) -> None:
        place = tmp_path / "not yet a folder"
        place.write_text("in the way")
        chat = ChatState(place / "chats.db", ready_session, settings)
        with qtbot.waitSignal(chat.noticed) as noticed:
            pass
        assert noticed.args is not None
        assert noticed.args[0] is ChatNotice.NOT_SAVED
        assert not now(chat.is_saved)
        assert chat._retry_timer.isActive()
        talk(chat, client, "one", "first")
        chat._retry()
        assert not now(chat.is_saved)
        place.unlink()
        with qtbot.waitSignal(chat.noticed) as noticed:
            chat._retry()
        assert noticed.args is not None
        assert noticed.args[0] is ChatNotice.SAVED_AGAIN
        assert now(chat.is_saved)
        chat.close()
        again = ChatState(place / "chats.db", ready_session, settings)
        assert [heading.title for heading in again.chats] == ["one"]
        again.close()


def test_error_report_is_what_failed_carries(chat: ChatState, client: FakeClient) -> None:
    heard: list[ErrorReport] = []
    chat.failed.connect(heard.append)
    chat.ask("one")
    client.answer(CommandFailed(request_id=asked_id(client), error=some_error()))
    assert heard == [some_error()]
