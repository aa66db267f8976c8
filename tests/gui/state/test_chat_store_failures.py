"""The database of the chats on bad days: damage, full and read-only drives."""

import contextlib
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from app.state import chat_database, chat_store
from app.state.chat_database import (
    SCHEMA_VERSION,
    NewerDatabaseError,
    open_file,
    set_database_aside,
)
from app.state.chat_store import ChatStore
from app.state.chat_values import ChatNotice
from tests.support.chat_talks import Clock, add_talk, notices, titles
from tests.support.unnarrowed import now


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
        self, store: ChatStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(chat_database, "_MAX_CHECKED_BYTES", 0)
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

        def refuse(_: Path, **__: object) -> None:
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


@pytest.mark.skipif(sys.platform == "win32", reason="a person's folders are their own there")
class TestPrivacy:
    def test_chats_are_for_their_person_alone(self, tmp_path: Path, clock: Clock) -> None:
        path = tmp_path / "data" / "chats.db"
        store = ChatStore(path, clock)
        add_talk(store, "secret", "words")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
        store.close()

    def test_chats_that_others_could_read_are_closed_to_them(
        self, path: Path, clock: Clock
    ) -> None:
        ChatStore(path, clock).close()
        path.chmod(0o644)
        ChatStore(path, clock).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
