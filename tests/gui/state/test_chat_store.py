"""The database of the chats: kills, damage, full and read-only drives, search."""

import contextlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.state import chat_database, chat_store
from app.state.chat_database import (
    SCHEMA_VERSION,
    NewerDatabaseError,
    open_file,
    set_database_aside,
)
from app.state.chat_store import ChatStore
from app.state.chat_values import AnswerEnd, ChatNotice, Message
from runtime.protocol.chat import Role
from tests.support.unnarrowed import now
from tests.support.window_values import some_stats


class Clock:
    """A time of day that the test moves."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[ChatStore]:
    store = ChatStore(path, clock)
    yield store
    store.close()


def add_talk(store: ChatStore, title: str, answer: str = "Because.") -> int:
    """Make a chat with one question and a finished answer; return its id."""
    chat_id = store.new_chat(title)
    question = store.add_message(chat_id, None, Role.USER, title)
    message_id = store.add_message(chat_id, question, Role.ASSISTANT, "", "tiny")
    store.settle(
        chat_id,
        Message(message_id, Role.ASSISTANT, answer, (1, 2), AnswerEnd.FINISHED, some_stats()),
    )
    return chat_id


def titles(store: ChatStore, search: str = "") -> list[str]:
    return [heading.title for heading in store.headings(search)]


def notices(store: ChatStore) -> list[ChatNotice]:
    return [notice for notice, _ in store.take_notices()]


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
        store.grow(chat_id, answer, "sourdough", [1])
        assert titles(store, "sourdough") == []
        again = ChatStore(path, clock)
        assert again.messages(chat_id)[1].end is AnswerEnd.CUT_OFF
        assert titles(again, "sourdough") == ["Why?"]
        again.close()

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


class TestDamage:
    @pytest.mark.parametrize("damage", ["not a database", "overwritten pages", "cut short"])
    def test_damaged_file_is_set_aside_and_a_new_one_begun(
        self, path: Path, clock: Clock, damage: str
    ) -> None:
        store = ChatStore(path, clock)
        for number in range(50):
            add_talk(store, f"chat {number}", "words " * 200)
        store.close()
        data = bytearray(path.read_bytes())
        if damage == "not a database":
            data[:] = b"this is text\n" * 100
        elif damage == "overwritten pages":
            data[4096:] = b"\xa5" * (len(data) - 4096)
        else:
            del data[len(data) // 2 :]
        path.write_bytes(data)
        again = ChatStore(path, clock)
        ((notice, aside),) = again.take_notices()
        assert notice is ChatNotice.DAMAGED_SET_ASIDE
        assert Path(aside).read_bytes() == data
        assert titles(again) == []
        add_talk(again, "new")
        again.close()
        third = ChatStore(path, clock)
        assert titles(third) == ["new"]
        third.close()

    def test_journal_of_a_damaged_file_goes_with_it(self, tmp_path: Path) -> None:
        for name in ("chats.db", "chats.db-wal"):
            (tmp_path / name).write_text(name)
        aside = set_database_aside(tmp_path / "chats.db")
        assert aside.read_text() == "chats.db"
        assert Path(f"{aside}-wal").read_text() == "chats.db-wal"
        assert not Path(f"{aside}-shm").exists()

    def test_damage_that_shows_later_is_handled_like_at_the_start(
        self, store: ChatStore, path: Path
    ) -> None:
        for number in range(30):
            add_talk(store, f"chat {number}", "words " * 500)
        store._database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (size - 4096))
        store._database.connection.close()
        store._database = chat_database.ChatDatabase(
            sqlite3.connect(path, isolation_level=None), has_words=True
        )
        assert titles(store) == []
        assert notices(store) == [ChatNotice.DAMAGED_SET_ASIDE]
        add_talk(store, "new")
        assert titles(store) == ["new"]

    def test_damaged_file_that_cannot_be_renamed_is_left_alone(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_: Path) -> Path:
            raise PermissionError(13, "no")

        path.parent.mkdir()
        path.write_bytes(b"nonsense" * 1000)
        monkeypatch.setattr(chat_store, "set_database_aside", refuse)
        store = ChatStore(path, clock)
        assert notices(store) == [ChatNotice.NOT_SAVED]
        add_talk(store, "new")
        assert titles(store) == ["new"]
        store.close()
        assert path.read_bytes() == b"nonsense" * 1000

    def test_file_of_a_newer_version_is_left_alone(self, path: Path, clock: Clock) -> None:
        ChatStore(path, clock).close()
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
        with pytest.raises(NewerDatabaseError):
            open_file(path)
        store = ChatStore(path, clock)
        assert notices(store) == [ChatNotice.NOT_SAVED]
        assert not store.try_to_save()
        store.close()

    def test_file_that_is_too_big_to_be_read_whole_still_opens(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(chat_database, "_MAX_CHECKED_BYTES", 0)
        store = ChatStore(path, clock)
        add_talk(store, "big")
        assert titles(store) == ["big"]
        store.close()


def make_read_only(store: ChatStore) -> None:
    """Have every write fail as on a read-only drive."""
    store._database.connection.execute("PRAGMA query_only=1")


class TestFullDrive:
    def test_drive_that_fills_up_moves_chats_to_memory_and_back(
        self, store: ChatStore, path: Path, clock: Clock
    ) -> None:
        old = add_talk(store, "old")
        (used,) = store._database.connection.execute("PRAGMA page_count").fetchone()
        store._database.connection.execute(f"PRAGMA max_page_count={used + 2}")
        new = add_talk(store, "new", "words " * 20_000)
        assert notices(store) == [ChatNotice.NOT_SAVED]
        assert not now(store.is_saved)
        store.delete_chat(old)
        assert titles(store) == ["new"]
        assert store.try_to_save()
        assert notices(store) == [ChatNotice.SAVED_AGAIN]
        assert now(store.is_saved)
        store.close()
        again = ChatStore(path, clock)
        assert titles(again, "words") == ["new"]
        assert len(again.messages(new)) == 2
        again.close()

    def test_chat_written_by_another_program_meanwhile_is_not_overwritten(
        self, store: ChatStore, path: Path, clock: Clock
    ) -> None:
        shared = add_talk(store, "shared")
        make_read_only(store)
        mine = add_talk(store, "mine")
        assert not now(store.is_saved)
        other = ChatStore(path, clock)
        other.rename_chat(shared, "renamed elsewhere")
        other.close()
        assert store.try_to_save()
        assert set(titles(store)) == {"mine", "renamed elsewhere"}
        assert len(store.messages(mine)) == 2

    def test_save_that_fails_again_keeps_everything_in_memory(
        self, store: ChatStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_read_only(store)
        add_talk(store, "mine")

        def fail(*_: object, **__: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(chat_store, "copy_to_disk", fail)
            assert not store.try_to_save()
        assert titles(store) == ["mine"]
        assert store.try_to_save()
        assert titles(store) == ["mine"]
        assert store.try_to_save(), "nothing to do is done"

    def test_file_that_can_only_be_read_shows_its_chats(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = ChatStore(path, clock)
        chat_id = add_talk(first, "old", "flour")
        first.close()

        def refuse(_: Path) -> None:
            raise sqlite3.OperationalError("attempt to write a readonly database")

        monkeypatch.setattr(chat_store, "open_file", refuse)
        store = ChatStore(path, clock)
        assert notices(store) == [ChatNotice.NOT_SAVED]
        assert titles(store, "flour") == ["old"]
        assert len(store.messages(chat_id)) == 2
        store.close()

    def test_failure_in_memory_is_ours_and_is_raised(self, store: ChatStore) -> None:
        make_read_only(store)
        add_talk(store, "mine")
        make_read_only(store)
        with pytest.raises(sqlite3.OperationalError):
            store.new_chat("more")
        store._database.connection.execute("PRAGMA query_only=0")

    def test_our_own_mistake_is_raised_and_changes_nothing(self, store: ChatStore) -> None:
        chat_id = add_talk(store, "mine")
        store._last_id = chat_id - 1
        store._now = lambda: 0.0
        with pytest.raises(sqlite3.IntegrityError):
            store.new_chat("same id")
        assert now(store.is_saved)
        assert titles(store) == ["mine"]

    def test_commit_that_fails_after_ending_its_transaction_is_told(self, store: ChatStore) -> None:
        def end_early(connection: sqlite3.Connection) -> None:
            connection.execute("COMMIT")
            raise sqlite3.OperationalError("disk I/O error")

        with pytest.raises(sqlite3.OperationalError):
            store._transact(end_early, is_durable=True)

    def test_copy_without_full_text_on_one_side_leaves_it_out(
        self, store: ChatStore, path: Path
    ) -> None:
        make_read_only(store)
        add_talk(store, "mine", "flour")
        store._database = chat_database.ChatDatabase(store._database.connection, has_words=False)
        assert store.try_to_save()
        assert titles(store, "mine") == ["mine"]


def test_two_thousand_chats_open_in_under_three_seconds(path: Path, clock: Clock) -> None:
    store = ChatStore(path, clock)
    connection = store._database.connection
    connection.execute("BEGIN")
    for number in range(1, 2001):
        connection.execute(
            "INSERT INTO chats VALUES (?, ?, ?, NULL, ?)",
            (number, f"chat {number}", float(number), number * 10 + 3),
        )
        for turn in range(4):
            connection.execute(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, 'finished', NULL, 'tiny')",
                (number * 10 + turn, number, number * 10 + turn - 1 if turn else None,
                 "assistant" if turn % 2 else "user", "many words " * 100, b"\0" * 800),
            )  # fmt: skip
            connection.execute(
                "INSERT INTO words (rowid, text) VALUES (?, ?)",
                (number * 10 + turn, f"many words in chat {number}"),
            )
    connection.execute("COMMIT")
    store.close()
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
