"""Chats in folders."""

import sqlite3
from pathlib import Path

from app.state import chat_database
from app.state.chat import ChatState
from app.state.chat_store import ChatStore, NameColumn
from app.state.session import Session
from app.state.settings import SettingsState
from tests.support.fake_client import FakeClient
from tests.support.played_answers import talk
from tests.support.unnarrowed import now


def folders(chat: ChatState) -> dict[str, str]:
    return {heading.title: heading.folder for heading in chat.chats}


def two_chats(chat: ChatState, client: FakeClient) -> tuple[int, int]:
    ids = []
    for question in ("bread", "trains"):
        chat.new_chat()
        talk(chat, client, question, "yes")
        assert chat.chat_id is not None
        ids.append(chat.chat_id)
    return ids[0], ids[1]


def test_chat_moved_into_a_folder_stays_there(
    chat: ChatState,
    client: FakeClient,
    ready_session: Session,
    settings: SettingsState,
    tmp_path: Path,
) -> None:
    bread, _ = two_chats(chat, client)
    chat.move_chat(bread, "  In the  kitchen ")
    assert folders(chat) == {"bread": "In the kitchen", "trains": ""}
    again = ChatState(tmp_path / "chats.db", ready_session, settings)
    assert folders(again) == folders(chat)
    again.close()
    chat.search("bre")
    assert folders(chat) == {"bread": "In the kitchen"}
    chat.search("bread")
    assert folders(chat) == {"bread": "In the kitchen"}


def test_folder_is_renamed_and_taken_away_with_its_chats_kept(
    chat: ChatState, client: FakeClient
) -> None:
    bread, trains = two_chats(chat, client)
    for chat_id in (bread, trains):
        chat.move_chat(chat_id, "Old")
    chat.rename_folder("Old", "New")
    assert set(folders(chat).values()) == {"New"}
    chat.rename_folder("New", "")
    assert folders(chat) == {"bread": "", "trains": ""}


def test_folder_of_many_chats_is_renamed_in_one_write_and_in_memory_too(
    store: ChatStore, path: Path
) -> None:
    ids = [store.new_chat(f"chat {number}") for number in range(5)]
    for chat_id in ids[:4]:
        store.move_chat(chat_id, "Old")
    statements: list[str] = []
    store._database.connection.set_trace_callback(statements.append)
    store.rename_everywhere(NameColumn.FOLDER, "Old", "New")
    assert sum("synchronous=FULL" in each for each in statements) == 1
    store.rename_everywhere(NameColumn.FOLDER, "Old", "Other")
    assert sum("synchronous=FULL" in each for each in statements) == 1
    store._database.connection.set_trace_callback(None)
    store._database.connection.execute("PRAGMA query_only=1")
    store.rename_everywhere(NameColumn.FOLDER, "New", "Last")
    assert not now(store.is_saved)
    assert store.try_to_save()
    again = ChatStore(path)
    assert [each.folder for each in again.headings()].count("Last") == 4
    again.close()


def test_chats_of_the_schema_before_are_in_no_folder(path: Path) -> None:
    path.parent.mkdir(parents=True)
    old = sqlite3.connect(path, isolation_level=None)
    old.create_function("thinking_of", 1, lambda text: "")
    old.create_function("answer_of", 1, lambda text: text)
    for statements in chat_database._MIGRATIONS[:4]:
        old.executescript(statements)
    old.executescript(
        "INSERT INTO chats (chat_id, title, changed_at_s) VALUES (1, 'old', 1);"
        "PRAGMA user_version=4;"
    )
    old.close()
    store = ChatStore(path)
    (heading,) = store.headings()
    assert (heading.title, heading.folder, store.preset(1)) == ("old", "", "")
    store.close()
