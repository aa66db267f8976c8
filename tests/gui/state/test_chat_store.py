"""The database of the chats: kills, damage, full and read-only drives, search."""

import contextlib
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.state import chat_database, chat_store
from app.state.chat_database import (
    open_file,
)
from app.state.chat_store import ChatStore
from app.state.chat_values import AnswerEnd, Message
from runtime.protocol.chat import Role
from tests.support.chat_talks import Clock, add_talk, fill, titles
from tests.support.window_values import some_stats


def write_first_schema(path: Path) -> None:
    """Write a file as the first version did: thinking stands in the text of the answer."""
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as old, old:
        old.executescript(chat_database._MIGRATIONS[0] + "PRAGMA user_version=1;")
        old.execute("INSERT INTO chats VALUES (1, 'Old', 5.0, NULL, 3)")
        for row in (
            (2, 1, None, "user", "what is <think>", b"", "finished", None, ""),
            (3, 1, 2, "assistant", "<think>hm</think>Paris.", b"\7\0\0\0", "finished", None, "t"),
        ):
            old.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        old.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize='trigram')")
        old.execute("INSERT INTO words (rowid, text) VALUES (3, '<think>hm</think>Paris.')")


class TestKeeping:
    def test_chat_is_the_same_in_the_next_program(
        self, store: ChatStore, path: Path, clock: Clock
    ) -> None:
        chat_id = add_talk(store, "Why?")
        store.set_draft(chat_id, "and then")
        before = store.messages(chat_id)
        store.close()
        again = ChatStore(path, clock)
        assert again.messages(chat_id) == before
        assert before[1].stats == some_stats()
        assert before[1].token_ids == (1, 2)
        assert again.draft(chat_id) == "and then"
        again.set_draft(chat_id, "")
        assert again.draft(chat_id) == ""
        assert again.take_notices() == []
        assert again.new_chat("next") > before[1].message_id
        again.close()

    def test_newest_chat_comes_first(self, store: ChatStore) -> None:
        first = add_talk(store, "first")
        add_talk(store, "second")
        assert titles(store) == ["second", "first"]
        store.add_message(first, None, Role.USER, "again")
        assert titles(store) == ["first", "second"]

    def test_unknown_chat_is_empty(self, store: ChatStore) -> None:
        assert store.messages(5) == []
        assert store.title(5) == ""
        assert store.draft(5) == ""
        assert store.variant_of(5, 6, 1) is None

    def test_deleted_chat_comes_back_until_it_is_old(
        self, store: ChatStore, path: Path, clock: Clock
    ) -> None:
        chat_id = add_talk(store, "Why?")
        store.delete_chat(chat_id)
        assert titles(store) == []
        store.undelete_chat(chat_id)
        assert titles(store) == ["Why?"]
        store.delete_chat(chat_id)
        store.close()
        young = ChatStore(path, clock)
        assert len(young.messages(chat_id)) == 2
        young.close()
        clock.now_s += chat_store.UNDO_TIME_S + 10
        old = ChatStore(path, clock)
        assert old.messages(chat_id) == []
        assert titles(old, "Because") == []
        old.close()

    def test_answer_that_was_growing_is_cut_off_in_the_next_program(
        self, store: ChatStore, path: Path, clock: Clock
    ) -> None:
        chat_id = store.new_chat("Why?")
        question = store.add_message(chat_id, None, Role.USER, "Why?")
        answer = store.add_message(chat_id, question, Role.ASSISTANT, "")
        store.grow(chat_id, Message(answer, Role.ASSISTANT, "sourdough", thinking="hm"), [1])
        assert titles(store, "sourdough") == []
        again = ChatStore(path, clock)
        last = again.messages(chat_id)[1]
        assert (last.text, last.thinking, last.token_ids) == ("sourdough", "hm", (1,))
        assert last.end is AnswerEnd.CUT_OFF
        assert titles(again, "sourdough") == ["Why?"]
        again.close()

    def test_chats_of_the_first_schema_have_their_thinking_parted(
        self, path: Path, clock: Clock
    ) -> None:
        write_first_schema(path)
        store = ChatStore(path, clock)
        question, answer = store.messages(1)
        assert (question.text, question.thinking) == ("what is <think>", "")
        assert (answer.text, answer.thinking, answer.token_ids) == ("Paris.", "hm", (7,))
        assert titles(store, "Paris") == ["Old"]
        store.close()
        again = ChatStore(path, clock)
        assert again.messages(1) == [question, answer]
        again.close()

    @pytest.mark.parametrize("version", range(1, len(chat_database._MIGRATIONS) + 1))
    def test_chats_of_every_earlier_version_are_brought_up_and_stay(
        self, path: Path, clock: Clock, version: int
    ) -> None:
        write_first_schema(path)
        with contextlib.closing(sqlite3.connect(path)) as old, old:
            old.create_function("thinking_of", 1, lambda _: "hm")
            old.create_function("answer_of", 1, lambda _: "Paris.")
            for number, statements in enumerate(chat_database._MIGRATIONS[1:version], start=2):
                old.executescript(f"{statements} PRAGMA user_version={number};")
        for _ in range(2):
            store = ChatStore(path, clock)
            assert store.take_notices() == []
            assert titles(store) == ["Old"]
            assert [message.text for message in store.messages(1)] == ["what is <think>", "Paris."]
            store.close()
        with contextlib.closing(sqlite3.connect(path)) as now:
            found = now.execute("PRAGMA user_version").fetchone()
        assert found == (len(chat_database._MIGRATIONS),)

    def test_chats_of_the_first_schema_are_readable_where_nothing_can_be_written(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_first_schema(path)

        def refuse(*_: object, **__: object) -> None:
            raise sqlite3.OperationalError("attempt to write a readonly database")

        monkeypatch.setattr(chat_store, "open_file", refuse)
        store = ChatStore(path, clock)
        assert not store.is_saved
        assert [message.thinking for message in store.messages(1)] == ["", "hm"]
        store.add_message(1, None, Role.USER, "more")
        store.close()

    def test_statistics_of_another_version_are_left_out(self, store: ChatStore, path: Path) -> None:
        chat_id = add_talk(store, "Why?")
        with contextlib.closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE messages SET stats=x'80' WHERE stats IS NOT NULL")
        assert store.messages(chat_id)[1].stats is None

    def test_empty_answer_that_is_removed_leaves_the_question(self, store: ChatStore) -> None:
        chat_id = store.new_chat("Why?")
        question = store.add_message(chat_id, None, Role.USER, "Why?")
        answer = store.add_message(chat_id, question, Role.ASSISTANT, "")
        store.remove_message(chat_id, answer)
        assert [message.message_id for message in store.messages(chat_id)] == [question]

    def test_variants_lead_to_the_newest_end_of_their_branch(self, store: ChatStore) -> None:
        chat_id = store.new_chat("Why?")
        first = store.add_message(chat_id, None, Role.USER, "first")
        answer = store.add_message(chat_id, first, Role.ASSISTANT, "")
        second = store.add_message(chat_id, None, Role.USER, "second")
        assert [item.message_id for item in store.messages(chat_id)] == [second]
        assert store.variant_of(chat_id, second, -1) == first
        assert store.variant_of(chat_id, second, 1) is None
        store.show_branch(chat_id, first)
        shown = store.messages(chat_id)
        assert [item.message_id for item in shown] == [first, answer]
        assert (shown[0].variant_index, shown[0].num_variants) == (0, 2)


class TestSearch:
    @pytest.mark.parametrize(
        ("words", "found"),
        [
            ("flour", ["bread"]),
            ("FLOUR", ["bread"]),
            ("our and wa", ["bread"]),
            ("tra", ["trains"]),
            ("小麦粉", ["bread"]),
            ("粉", ["bread"]),
            ('"quoted"', ["trains"]),
            ("100%", ["trains"]),
            ("0%", ["trains"]),
            ("%", ["trains"]),
            ("_", []),
            ("NEAR(", []),
            ("nothing like it", []),
            ("flo\0ur", ["bread"]),
            ("\ud800trains", ["trains"]),
            ("\0", ["trains", "bread"]),
            ("  ", ["trains", "bread"]),
        ],
    )
    @pytest.mark.parametrize("has_words", [True, False])
    def test_search_finds_any_part_of_title_and_text(
        self, store: ChatStore, words: str, found: list[str], has_words: bool
    ) -> None:
        if not has_words:
            connection = store._database.connection
            store._database = chat_database.ChatDatabase(connection, has_words=False)
        add_talk(store, "bread", "flour and water, 小麦粉")
        add_talk(store, "trains", 'rails, "quoted", 100% on time')
        assert titles(store, words) == found

    def test_sqlite_without_full_text_search_still_works(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            chat_database, "_WORDS", "CREATE VIRTUAL TABLE words USING no_such_module(text)"
        )
        store = ChatStore(path, clock)
        chat_id = add_talk(store, "bread", "flour")
        assert titles(store, "flour") == ["bread"]
        store.delete_chat(chat_id)
        store.close()
        clock.now_s += chat_store.UNDO_TIME_S + 10
        again = ChatStore(path, clock)
        assert again.messages(chat_id) == []
        again.close()

    def test_other_failure_of_the_full_text_table_is_not_hidden(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(chat_database, "_WORDS", "CREATE NONSENSE")
        with pytest.raises(sqlite3.OperationalError):
            open_file(path)


class TestKill:
    def test_kill_in_the_middle_of_writing_loses_at_most_the_last_save(self, path: Path) -> None:
        writer = subprocess.Popen(
            [sys.executable, "-m", "tests.support.chat_writer", str(path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[3],
        )
        assert writer.stdout is not None
        for _ in range(200):
            line = writer.stdout.readline()
        writer.kill()
        rest = writer.stdout.read().split()
        writer.stdout.close()
        writer.wait()
        last_told = int((rest or [line])[-1])
        store = ChatStore(path)
        (heading,) = store.headings()
        answer = store.messages(heading.chat_id)[1]
        assert last_told <= len(answer.token_ids) <= last_told + 1
        assert answer.token_ids == tuple(range(len(answer.token_ids)))
        assert answer.text == "".join(f"{item} " for item in answer.token_ids)
        assert answer.end is AnswerEnd.CUT_OFF
        assert store.take_notices() == []
        store.close()


def test_two_thousand_chats_open_in_under_three_seconds(path: Path, clock: Clock) -> None:
    fill(path, num_chats=2000)
    started_s = time.perf_counter()
    again = ChatStore(path, clock)
    headings = again.headings()
    messages = again.messages(headings[0].chat_id)
    found = again.headings("chat 1999")
    taken_s = time.perf_counter() - started_s
    again.close()
    assert len(headings) == 2000
    assert len(messages) == 4
    assert [heading.chat_id for heading in found] == [1999]
    assert taken_s < 3.0


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=25))
def test_shown_branch_equals_a_plain_tree(steps: list[tuple[int, bool]]) -> None:
    """Messages are added anywhere and branches shown; the store agrees with a dictionary."""
    database = chat_database.open_memory()
    store = ChatStore.__new__(ChatStore)
    store._database = database
    store._is_saved = False
    store._touched = set()
    store._last_id = 0
    store._now = lambda: 0.0
    chat_id = store.new_chat("tree")
    parents: dict[int, int | None] = {}
    leaf: int | None = None
    for choice, is_added in steps:
        known = list(parents)
        picked = known[choice % len(known)] if known else None
        if is_added or picked is None:
            leaf = store.add_message(chat_id, picked, Role.USER, "x")
            parents[leaf] = picked
        else:
            store.show_branch(chat_id, picked)
            leaf = picked
            while below := [item for item, parent in parents.items() if parent == leaf]:
                leaf = max(below)
    branch: list[int] = []
    while leaf is not None:
        branch.append(leaf)
        leaf = parents[leaf]
    assert [item.message_id for item in store.messages(chat_id)] == branch[::-1]
    for shown in store.messages(chat_id):
        siblings = [item for item, above in parents.items() if above == parents[shown.message_id]]
        assert shown.num_variants == len(siblings)
        assert siblings[shown.variant_index] == shown.message_id
    database.connection.close()
