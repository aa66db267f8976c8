"""The copy of the chats: when it is made, what it holds, and the day on which it is needed."""

import contextlib
import gc
import os
import shutil
import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from app.state import chat_backup, chat_copy
from app.state.chat_backup import ChatBackup
from app.state.chat_copy import copy_chats, copy_of, is_copy_due, is_lost, restore_chats
from app.state.chat_database import SCHEMA_VERSION, ChatDatabase
from app.state.chat_store import ChatStore
from app.state.chat_values import ChatNotice
from runtime.protocol.chat import Role
from tests.support.chat_talks import Clock, add_talk, notices, titles


def keep(path: Path, clock: Clock, *names: str) -> None:
    """Make a file with chats and a copy of it."""
    store = ChatStore(path, clock)
    for name in names:
        add_talk(store, name, "words " * 500)
    store.close()
    assert copy_chats(path)


def left_beside(path: Path) -> list[str]:
    """Return the names of what lies in the folder and is neither the file nor its copy."""
    known = {path.name, copy_of(path).name}
    return sorted(file.name for file in path.parent.iterdir() if file.name not in known)


class TestRestoring:
    @pytest.mark.parametrize("damage", ["overwritten", "cut short", "emptied", "gone"])
    def test_chats_of_a_damaged_file_come_back_from_the_copy(
        self, path: Path, clock: Clock, damage: str
    ) -> None:
        keep(path, clock, *(f"chat {number}" for number in range(12)))
        data = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(
                {
                    "overwritten": data[:4096] + b"\xa5" * (len(data) - 4096),
                    "cut short": data[: len(data) // 2],
                    "emptied": b"",
                }[damage]
            )
        store = ChatStore(path, clock)
        ((notice, when),) = store.take_notices()
        assert notice is ChatNotice.RESTORED
        assert len(when) == len("2026-11-30 12:00")
        assert titles(store) == [f"chat {number}" for number in reversed(range(12))]
        add_talk(store, "new")
        store.close()
        assert any("damaged" in name for name in left_beside(path)) == (damage != "gone")
        again = ChatStore(path, clock)
        assert titles(again)[0] == "new"
        assert notices(again) == []
        again.close()

    def test_damage_that_shows_while_chats_are_used_brings_the_copy_back(
        self, path: Path, clock: Clock
    ) -> None:
        keep(path, clock, *(f"chat {number}" for number in range(12)))
        store = ChatStore(path, clock)
        store._database.connection.close()
        path.write_bytes(b"\xa5" * path.stat().st_size)
        store._database = chat_store_of(path)
        assert titles(store)[0] == "chat 11"
        assert notices(store) == [ChatNotice.RESTORED]
        store.close()

    @pytest.mark.parametrize("copy", [b"", b"no database at all" * 300])
    def test_copy_that_is_no_use_leaves_a_new_file(
        self, path: Path, clock: Clock, copy: bytes
    ) -> None:
        keep(path, clock, "old")
        path.write_bytes(b"nonsense" * 1000)
        copy_of(path).write_bytes(copy)
        if not copy:
            copy_of(path).unlink()
        store = ChatStore(path, clock)
        assert notices(store) == [ChatNotice.DAMAGED_SET_ASIDE]
        assert titles(store) == []
        store.close()

    def test_copy_that_is_damaged_inside_is_not_put_in_its_place(
        self, path: Path, clock: Clock
    ) -> None:
        keep(path, clock, *(f"chat {number}" for number in range(12)))
        data = copy_of(path).read_bytes()
        copy_of(path).write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
        before = path.read_bytes()
        assert restore_chats(path) is None
        assert path.read_bytes() == before

    def test_copy_of_a_newer_version_is_left_alone(self, path: Path, clock: Clock) -> None:
        keep(path, clock, "old")
        with contextlib.closing(sqlite3.connect(copy_of(path))) as other:
            other.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
        path.write_bytes(b"nonsense" * 1000)
        store = ChatStore(path, clock)
        assert notices(store) == [ChatNotice.NOT_SAVED]
        store.close()

    def test_drive_without_room_for_the_copy_keeps_it_for_the_next_start(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep(path, clock, "old")
        path.write_bytes(b"nonsense" * 1000)

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("app.state.chat_copy.shutil.copyfile", refuse)
            store = ChatStore(path, clock)
            assert notices(store) == [ChatNotice.NOT_SAVED]
            store.close()
        again = ChatStore(path, clock)
        assert notices(again) == [ChatNotice.RESTORED]
        assert titles(again) == ["old"]
        again.close()

    def test_file_without_a_copy_is_not_lost(self, path: Path) -> None:
        path.parent.mkdir()
        assert not is_lost(path)
        path.touch()
        assert not is_lost(path)


def chat_store_of(path: Path) -> ChatDatabase:
    """Open a file without looking at it, as it was open before it was damaged."""
    return ChatDatabase(sqlite3.connect(path, isolation_level=None), has_words=True)


class TestCopying:
    def test_copy_holds_what_is_in_the_journal_and_is_one_private_file(
        self, path: Path, clock: Clock
    ) -> None:
        store = ChatStore(path, clock)
        add_talk(store, "in the journal")
        assert is_copy_due(path)
        assert copy_chats(path)
        assert not is_copy_due(path)
        names = left_beside(path)
        assert names == ["chats.db-shm", "chats.db-wal"]
        if sys.platform != "win32":
            assert stat.S_IMODE(copy_of(path).stat().st_mode) == 0o600
        add_talk(store, "later")
        assert is_copy_due(path)
        store.close()
        shutil.copyfile(copy_of(path), path)
        again = ChatStore(path, clock)
        assert titles(again) == ["in the journal"]
        again.close()

    def test_opening_and_closing_makes_no_copy_due(self, path: Path, clock: Clock) -> None:
        keep(path, clock, "old")
        store = ChatStore(path, clock)
        assert not is_copy_due(path)
        store.close()
        assert not is_copy_due(path)

    def test_damaged_file_does_not_replace_its_copy(self, path: Path, clock: Clock) -> None:
        keep(path, clock, *(f"chat {number}" for number in range(12)))
        good = copy_of(path).read_bytes()
        data = path.read_bytes()
        for broken in (b"nonsense" * 1000, data[:4096] + b"\xa5" * (len(data) - 4096)):
            path.write_bytes(broken)
            assert not copy_chats(path)
            assert copy_of(path).read_bytes() == good
            assert left_beside(path) == []

    def test_full_drive_keeps_the_copy_before(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep(path, clock, "old")
        good = copy_of(path).read_bytes()

        def refuse(_: Path) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(chat_copy, "_make_durable", refuse)
        assert not copy_chats(path)
        assert copy_of(path).read_bytes() == good
        assert left_beside(path) == []

    def test_folder_that_cannot_be_looked_into_has_nothing_due(
        self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep(path, clock, "old")

        def refuse(_: Path) -> int:
            raise PermissionError(13, "no")

        monkeypatch.setattr(chat_copy, "_last_change_ns", refuse)
        assert not is_copy_due(path)


@pytest.fixture
def backup(qapp: QCoreApplication, path: Path, clock: Clock) -> Iterator[ChatBackup]:
    keep(path, clock, "old")
    copy_of(path).unlink()
    backup = ChatBackup(path)
    yield backup
    backup.close()


class TestBackup:
    def test_copy_is_made_beside_the_windows_work(
        self, qtbot: QtBot, backup: ChatBackup, path: Path
    ) -> None:
        backup.begin()
        assert backup.is_running
        assert not gc.isenabled()
        qtbot.waitUntil(lambda: not backup.is_running)
        assert gc.isenabled()
        assert not is_copy_due(path)
        backup.begin()
        assert not backup.is_running, "nothing has changed"

    def test_end_waits_for_a_copy_and_leaves_a_collector_that_rested_resting(
        self, backup: ChatBackup, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go_on = threading.Event()

        def copy_slowly(copied: Path) -> bool:
            go_on.wait(20)
            return copy_chats(copied)

        monkeypatch.setattr(chat_backup, "copy_chats", copy_slowly)
        gc.disable()
        try:
            backup.begin()
            backup.begin()
            backup._on_look()
            assert backup.is_running
            go_on.set()
            backup.close()
            assert not gc.isenabled()
        finally:
            gc.enable()
        assert not is_copy_due(path)

    def test_end_copies_a_file_that_is_not_too_large(
        self, backup: ChatBackup, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(chat_backup, "MAX_COPIED_AT_END_BYTES", 0)
            backup.close()
        assert is_copy_due(path)
        backup.close()
        assert not is_copy_due(path)


class TestClocks:
    @pytest.mark.parametrize("days", [-365, -20_000, 3650], ids=["back", "to 1970", "forward"])
    def test_clock_that_jumps_mixes_nothing_up(self, path: Path, days: int) -> None:
        clock = Clock()
        store = ChatStore(path, clock)
        chat_id = add_talk(store, "before")
        last_id = store.messages(chat_id)[-1].message_id
        before_s = clock.now_s
        clock.now_s = max(0.0, clock.now_s + days * 86_400)
        question = store.add_message(chat_id, last_id, Role.USER, "and now?")
        answer = store.add_message(chat_id, question, Role.ASSISTANT, "", "tiny")
        assert last_id < question < answer
        assert [message.text for message in store.messages(chat_id)][-2:] == ["and now?", ""]
        newer = add_talk(store, "after")
        store.close()
        assert copy_chats(path)
        # Put right again, as by the network.
        clock.now_s = before_s + 60
        again = ChatStore(path, clock)
        assert set(titles(again)) == {"before", "after"}
        assert len(again.messages(newer)) == 2
        latest = again.messages(newer)[-1].message_id
        assert again.add_message(newer, latest, Role.USER, "now") > latest
        assert is_copy_due(path)
        again.close()

    def test_file_that_seems_older_than_its_copy_is_copied(self, path: Path, clock: Clock) -> None:
        keep(path, clock, "old")
        store = ChatStore(path, clock)
        add_talk(store, "new")
        store.close()
        os.utime(path, (0, 0))
        assert is_copy_due(path)
        assert copy_chats(path)
        assert not is_copy_due(path)


class TestStartedTwice:
    def test_chats_of_two_windows_are_all_kept_and_copied(self, path: Path, clock: Clock) -> None:
        first, second = ChatStore(path, clock), ChatStore(path, clock)
        second._last_id = first._last_id = 0
        shared = add_talk(first, "first")
        clock.now_s += 1
        add_talk(second, "second")
        assert set(titles(first)) == set(titles(second)) == {"first", "second"}
        assert copy_chats(path)
        first.close()
        second.rename_chat(shared, "renamed by the other")
        second.close()
        path.unlink()
        third = ChatStore(path, clock)
        assert set(titles(third)) == {"first", "second"}
        third.close()
