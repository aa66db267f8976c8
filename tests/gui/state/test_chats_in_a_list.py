"""Several chats: one is open, others are answered, searched, renamed and deleted."""

import json

from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.state.chat_values import AnswerEnd
from runtime.protocol.messages import (
    CancelRequest,
    CommandFailed,
    GenerationCancelled,
    StartGeneration,
)
from tests.support.fake_client import FakeClient
from tests.support.played_answers import asked_id, finish, talk, texts, write
from tests.support.unnarrowed import now
from tests.support.window_values import some_error, some_stats


class TestList:
    def test_answer_goes_on_while_another_chat_is_open(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot
    ) -> None:
        chat.ask("one")
        first = chat.chat_id
        assert first is not None
        write(client, "a", 1)
        chat.new_chat()
        assert chat.messages == []
        assert now(chat.is_answering)
        assert not now(chat.is_answering_here)
        with qtbot.assertNotEmitted(chat.answer_grew):
            write(client, "b", 2)
            chat._writer._show()
        chat.open_chat(first)
        assert texts(chat) == ["one", "ab"]
        chat.new_chat()
        with qtbot.assertNotEmitted(chat.answer_ended):
            finish(client)
        chat.open_chat(first)
        assert chat.messages[-1].end is AnswerEnd.FINISHED

    def test_answer_of_another_chat_that_fails_empty_is_removed_there(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        chat.ask("one")
        first = chat.chat_id
        assert first is not None
        chat.new_chat()
        client.answer(CommandFailed(request_id=asked_id(client), error=some_error()))
        chat.open_chat(first)
        assert texts(chat) == ["one"]

    def test_deleted_chat_comes_back_by_undo(self, chat: ChatState, client: FakeClient) -> None:
        talk(chat, client, "one", "first")
        first = chat.chat_id
        assert first is not None
        chat.delete_chat(first)
        assert chat.chats == []
        assert now(chat.chat_id) is None
        assert now(chat.can_undo_delete)
        chat.undo_delete()
        assert chat.chat_id == first
        assert texts(chat) == ["one", "first"]
        chat.undo_delete()
        assert not now(chat.can_undo_delete)

    def test_deleting_the_chat_that_is_answered_stops_the_answer(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        talk(chat, client, "old", "answer")
        old = chat.chat_id
        assert old is not None
        chat.new_chat()
        chat.ask("one")
        chat.delete_chat(old)
        assert client.count(CancelRequest) == 0
        assert now(chat.is_answering_here)
        assert chat.chat_id is not None
        chat.delete_chat(chat.chat_id)
        assert client.count(CancelRequest) == 1

    def test_renamed_chat_keeps_its_new_title(self, chat: ChatState, client: FakeClient) -> None:
        talk(chat, client, "one", "first")
        assert chat.chat_id is not None
        chat.rename_chat(chat.chat_id, " Bread \n and salt ")
        assert chat.title == "Bread and salt"
        chat.rename_chat(chat.chat_id, " ")
        assert chat.title == "Bread and salt"

    def test_search_shows_chats_with_these_words(self, chat: ChatState, client: FakeClient) -> None:
        talk(chat, client, "bread", "flour and water")
        chat.new_chat()
        talk(chat, client, "trains", "rails")
        chat.search("flour")
        assert chat.search_text == "flour"
        assert [heading.title for heading in chat.chats] == ["bread"]
        chat.search("")
        assert [heading.title for heading in chat.chats] == ["trains", "bread"]

    def test_draft_belongs_to_its_chat(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot
    ) -> None:
        chat.set_draft("one")
        chat.ask("one")
        assert chat.draft == ""
        write(client, "first", 1)
        finish(client)
        first = chat.chat_id
        assert first is not None
        chat.set_draft("and then")
        qtbot.waitUntil(lambda: not chat._draft_timer.isActive())
        chat.new_chat()
        assert chat.draft == ""
        chat.set_draft("something new")
        chat.open_chat(first)
        assert chat.draft == "and then"
        chat.new_chat()
        assert chat.draft == "something new"

    def test_thinking_is_kept_apart_and_told_again(
        self, chat: ChatState, client: FakeClient, qtbot: QtBot
    ) -> None:
        chat.ask("Why?")
        with qtbot.waitSignal(chat.answer_grew):
            write(client, "", 1, thinking="hm")
        assert (chat.messages[-1].text, chat.messages[-1].thinking) == ("", "hm")
        write(client, "Because.", 2)
        finish(client)
        assert (texts(chat)[-1], chat.messages[-1].thinking) == ("Because.", "hm")
        chat.ask("And?")
        told = client.last(StartGeneration).conversation[1]
        assert (told.text, told.thinking, told.token_ids) == ("Because.", "hm", [1, 2])

    def test_answer_stopped_while_thinking_is_kept(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        chat.ask("Why?")
        write(client, "", thinking="hm")
        client.answer(GenerationCancelled(request_id=asked_id(client), stats=some_stats()))
        last = chat.messages[-1]
        assert (last.text, last.thinking, last.end) == ("", "hm", AnswerEnd.STOPPED)

    def test_export_has_all_messages_and_no_thinking_in_the_text(
        self, chat: ChatState, client: FakeClient
    ) -> None:
        chat.ask("Why?")
        write(client, "", 1, thinking="h")
        write(client, "Because.", 2, thinking="m")
        finish(client)
        assert chat.chat_id is not None
        assert chat.export_markdown(chat.chat_id) == (
            "# Why?\n\n## You\n\nWhy?\n\n## tiny\n\nBecause.\n"
        )
        exported = json.loads(chat.export_json(chat.chat_id))
        assert [row["text"] for row in exported["messages"]] == ["Why?", "Because."]
        assert [row["thinking"] for row in exported["messages"]] == ["", "hm"]
