"""Keeps chats in a database file, and in memory while that is not possible."""

import contextlib
import enum
import sqlite3
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from app.state.chat_copy import is_lost, restore_chats
from app.state.chat_database import (
    ChatDatabase,
    NewerDatabaseError,
    copy_readable,
    is_damage,
    migrate,
    open_file,
    open_memory,
    set_database_aside,
)
from app.state.chat_import import ImportedChat, rows_of
from app.state.chat_queries import (
    copy_to_disk,
    details,
    end_growing,
    headings,
    index,
    newest_id,
    remove_deleted,
)
from app.state.chat_rows import branch_of, leaf_below, sibling_of, tree_of
from app.state.chat_values import AnswerEnd, ChatDetails, ChatHeading, ChatNotice, Message
from runtime.protocol.chat import GenerationStats, Role

UNDO_TIME_S = 600.0
"""A deleted chat can be brought back for this long; afterwards a start removes it."""
_Result = TypeVar("_Result")
_Action = Callable[[sqlite3.Connection], _Result]


class NameColumn(enum.Enum):
    """What of a chat is the name of something that several chats share."""

    FOLDER = "folder"
    PRESET = "preset"


class ChatStore:
    """All chats of this person. Every change is on the drive when the method returns.

    A file that is damaged is set aside; its copy takes its place, or else a new one. While the file
    cannot be written everything is kept in memory; ``try_to_save`` moves it to the file.
    ``take_notices`` says what a person has to know. Threads: one thread, the window's.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._notices: list[tuple[ChatNotice, str]] = []
        self._is_saved = True
        self._touched: set[int] = set()
        self._database = self._open()
        self._last_id = self._run(lambda _: newest_id(self._database))
        self._tidy()

    @property
    def is_saved(self) -> bool:
        """Whether chats are in the file, and not in memory only."""
        return self._is_saved

    def take_notices(self) -> list[tuple[ChatNotice, str]]:
        """Return what happened since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def headings(self, search: str = "") -> list[ChatHeading]:
        """Return the chats, pinned and then newest first; those with the words searched for."""
        wanted = search.strip()
        return self._run(lambda _: headings(self._database, wanted))

    def messages(self, chat_id: int) -> list[Message]:
        """Return the branch of a chat that is shown, from its first message to its last."""
        return self._run(lambda connection: branch_of(connection, chat_id))

    def all_messages(self, chat_id: int) -> list[tuple[int | None, Message]]:
        """Return all messages of a chat, oldest first, each with the id of what it follows."""
        return self._run(lambda connection: tree_of(connection, chat_id))

    def variant_of(self, chat_id: int, message_id: int, step: int) -> int | None:
        """Return the message so many steps beside another; None if there is none."""
        return self._run(lambda connection: sibling_of(connection, chat_id, message_id, step))

    def title(self, chat_id: int) -> str:
        """Return a chat's title; empty if there is no such chat."""
        return self._text("SELECT title FROM chats WHERE chat_id=?", chat_id)

    def details(self, chat_id: int) -> ChatDetails:
        """Return what a chat has beside its messages."""
        return self._run(lambda _: details(self._database, chat_id))

    def told_from(self, chat_id: int) -> int:
        """Return the id from which on messages are told to the model; 0 tells all."""
        (found,) = self._run(
            lambda connection: connection.execute(
                "SELECT coalesce(max(told_from_id), 0) FROM chats WHERE chat_id=?", (chat_id,)
            ).fetchone()
        )
        return int(found)

    def summary(self, chat_id: int) -> str:
        """Return what the model is told in place of older messages; empty if nothing is."""
        return self._text("SELECT summary FROM chats WHERE chat_id=?", chat_id)

    def set_told_from(self, chat_id: int, message_id: int, summary: str = "") -> None:
        """Tell the model messages from this id on only, a summary before them; 0 tells all."""
        self._change(
            chat_id,
            "UPDATE chats SET told_from_id=?, summary=? WHERE chat_id=?",
            (message_id, summary, chat_id),
        )

    def new_chat(self, title: str) -> int:
        """Make a chat without messages and return its id."""
        chat_id = self._new_id()
        self._change(
            chat_id,
            "INSERT INTO chats (chat_id, title, changed_at_s) VALUES (?, ?, ?)",
            (chat_id, title, self._now()),
        )
        return chat_id

    def add_chat(self, chat: ImportedChat) -> int:
        """Keep a chat of a file, whole or not at all, and return its id."""
        chat_id = self._new_id()
        messages, parents, shown = rows_of(chat)
        ids = [self._new_id() for _ in messages]
        path = [ids[place] for place in shown]
        # The messages behind the last one, none of which there is yet, are told all the same.
        told_from_id = [*path, ids[-1] + 1][chat.num_untold] if chat.num_untold else 0

        def add(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO chats (chat_id, title, changed_at_s, leaf_id, is_pinned, folder,"
                " preset, summary, told_from_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (chat_id, chat.title, chat.changed_at_s or self._now(), path[-1], chat.is_pinned,
                 chat.folder, chat.preset, chat.summary, told_from_id),
            )  # fmt: skip
            for message_id, parent, message in zip(ids, parents, messages, strict=True):
                above = None if parent is None else ids[parent]
                connection.execute(
                    "INSERT INTO messages VALUES (?, ?, ?, ?, ?, x'', ?, ?, ?, ?)",
                    (message_id, chat_id, above, message.role.value, message.text,
                     message.end.value, _packed_stats(message.stats), message.model_name,
                     message.thinking),
                )  # fmt: skip
                index(self._database, message_id, message.text)

        self._touch(chat_id)
        self._run(add)
        return chat_id

    def add_message(
        self, chat_id: int, parent_id: int | None, role: Role, text: str, model_name: str = ""
    ) -> int:
        """Add a message after another (None: as a first one), show its branch, return its id.

        An answer begins as growing, everything else is finished.
        """
        message_id = self._new_id()
        ending = AnswerEnd.GROWING if role is Role.ASSISTANT else AnswerEnd.FINISHED

        def add(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, x'', ?, NULL, ?, '')",
                (message_id, chat_id, parent_id, role.value, text, ending.value, model_name),
            )
            connection.execute(
                "UPDATE chats SET leaf_id=?, changed_at_s=? WHERE chat_id=?",
                (message_id, self._now(), chat_id),
            )
            if ending is not AnswerEnd.GROWING:
                index(self._database, message_id, text)

        self._touch(chat_id)
        self._run(add, is_durable=True)
        return message_id

    def reopen(self, chat_id: int, message_id: int) -> None:
        """Let an answer that has ended grow again."""
        self._change(
            chat_id,
            "UPDATE messages SET ending=? WHERE message_id=?",
            (AnswerEnd.GROWING.value, message_id),
        )

    def grow(self, chat_id: int, message: Message, token_ids: Sequence[int]) -> None:
        """Save the texts and ids of a growing answer: safe against a kill, not yet a power cut."""
        self._touch(chat_id)
        self._run(
            lambda connection: connection.execute(
                "UPDATE messages SET text=?, thinking=?, token_ids=? WHERE message_id=?",
                (message.text, message.thinking, _packed(token_ids), message.message_id),
            )
        )

    def settle(self, chat_id: int, message: Message) -> None:
        """Save an answer that has ended."""
        stats = _packed_stats(message.stats)

        def settle(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE messages SET text=?, thinking=?, token_ids=?, ending=?, stats=?"
                " WHERE message_id=?",
                (message.text, message.thinking, _packed(message.token_ids), message.end.value,
                 stats, message.message_id),
            )  # fmt: skip
            connection.execute(
                "UPDATE chats SET changed_at_s=? WHERE chat_id=?", (self._now(), chat_id)
            )
            index(self._database, message.message_id, message.text)

        self._touch(chat_id)
        self._run(settle, is_durable=True)

    def remove_message(self, chat_id: int, message_id: int, replaced_id: int | None = None) -> None:
        """Remove an answer of which nothing came.

        The end of the chat is the answer that it was to replace, or else its question.
        """

        def remove(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE chats SET leaf_id="
                "coalesce(?, (SELECT parent_id FROM messages WHERE message_id=?)) WHERE chat_id=?",
                (replaced_id, message_id, chat_id),
            )
            connection.execute("DELETE FROM messages WHERE message_id=?", (message_id,))

        self._touch(chat_id)
        self._run(remove, is_durable=True)

    def show_branch(self, chat_id: int, message_id: int) -> None:
        """Show the branch of a message, on to its newest end."""
        self._touch(chat_id)
        self._run(
            lambda connection: connection.execute(
                "UPDATE chats SET leaf_id=? WHERE chat_id=?",
                (leaf_below(connection, chat_id, message_id), chat_id),
            ),
            is_durable=True,
        )

    def rename_chat(self, chat_id: int, title: str) -> None:
        """Give a chat another title."""
        self._change(chat_id, "UPDATE chats SET title=? WHERE chat_id=?", (title, chat_id))

    def pin_chat(self, chat_id: int, *, is_pinned: bool) -> None:
        """Keep a chat at the top of the list, or let it go where its age puts it."""
        self._change(chat_id, "UPDATE chats SET is_pinned=? WHERE chat_id=?", (is_pinned, chat_id))

    def move_chat(self, chat_id: int, folder: str) -> None:
        """Put a chat into a folder; empty takes it out."""
        self._change(chat_id, "UPDATE chats SET folder=? WHERE chat_id=?", (folder, chat_id))

    def preset(self, chat_id: int) -> str:
        """Return the name of a chat's preset; empty if it has none."""
        return self._text("SELECT preset FROM chats WHERE chat_id=?", chat_id)

    def set_preset(self, chat_id: int, name: str) -> None:
        """Give a chat a preset; empty takes it away."""
        self._change(chat_id, "UPDATE chats SET preset=? WHERE chat_id=?", (name, chat_id))

    def rename_everywhere(self, column: NameColumn, before: str, after: str) -> None:
        """Give all chats that have a folder or a preset of a name the new name of it."""
        find = f"SELECT chat_id FROM chats WHERE {column.value}=?"  # noqa: S608 - an enum
        change = f"UPDATE chats SET {column.value}=? WHERE {column.value}=?"  # noqa: S608 - an enum
        rows = self._run(lambda connection: connection.execute(find, (before,)).fetchall())
        if rows:
            self._touch(*(chat_id for (chat_id,) in rows))
            self._run(
                lambda connection: connection.execute(change, (after, before)), is_durable=True
            )

    def delete_chat(self, chat_id: int) -> None:
        """Take a chat out of sight; ``undelete_chat`` brings it back for a while."""
        self._change(
            chat_id, "UPDATE chats SET deleted_at_s=? WHERE chat_id=?", (self._now(), chat_id)
        )

    def undelete_chat(self, chat_id: int) -> None:
        """Bring a deleted chat back."""
        self._change(chat_id, "UPDATE chats SET deleted_at_s=NULL WHERE chat_id=?", (chat_id,))

    def draft(self, chat_id: int) -> str:
        """Return the unsent text of a chat; 0 stands for a new one."""
        return self._text("SELECT text FROM drafts WHERE chat_id=?", chat_id)

    def set_draft(self, chat_id: int, text: str) -> None:
        """Keep the unsent text of a chat; empty forgets it."""
        self._touch(chat_id)

        def keep(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM drafts WHERE chat_id=?", (chat_id,))
            if text:
                connection.execute("INSERT INTO drafts VALUES (?, ?)", (chat_id, text))

        self._run(keep)

    def try_to_save(self) -> bool:
        """Move what is only in memory to the file; return whether all is saved now."""
        if self._is_saved:
            return True
        try:
            fresh = self._copied()
        except (sqlite3.DatabaseError, OSError, NewerDatabaseError):
            return False
        self._database.connection.close()
        self._database = fresh
        self._is_saved = True
        self._touched.clear()
        self._notices.append((ChatNotice.SAVED_AGAIN, str(self._path)))
        return True

    def close(self) -> None:
        """Save what can be saved and close the file."""
        self.try_to_save()
        self._database.connection.close()

    def _copied(self) -> ChatDatabase:
        """Return the file opened again, with everything from memory in it."""
        memory = self._database.connection
        fresh = self._open_anew() if is_lost(self._path) else open_file(self._path)
        try:
            memory.execute("ATTACH DATABASE ? AS disk", (str(self._path),))
            try:
                self._transact(
                    lambda _: copy_to_disk(
                        self._database, self._touched, has_disk_words=fresh.has_words
                    ),
                    is_durable=True,
                )
            finally:
                memory.execute("DETACH DATABASE disk")
        except sqlite3.DatabaseError:
            fresh.connection.close()
            raise
        return fresh

    def _open(self, *, is_suspect: bool = False) -> ChatDatabase:
        try:
            if is_lost(self._path):
                return self._open_anew()
            return open_file(self._path, is_suspect=is_suspect)
        except sqlite3.DatabaseError as error:
            reason = str(error)
            if is_damage(error):
                with contextlib.suppress(sqlite3.DatabaseError, OSError, NewerDatabaseError):
                    return self._open_anew()
        except OSError as error:
            reason = error.strerror or str(error)
        except NewerDatabaseError as error:
            reason = str(error)
        return self._open_memory(reason)

    def _open_anew(self) -> ChatDatabase:
        """Open the copy in place of a damaged or lost file, or else a new one."""
        aside = set_database_aside(self._path)
        changed_at_s = restore_chats(self._path)
        database = open_file(self._path)
        if changed_at_s is None:
            self._notices.append((ChatNotice.DAMAGED_SET_ASIDE, str(aside)))
        else:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(changed_at_s))
            self._notices.append((ChatNotice.RESTORED, when))
        return database

    def _open_memory(self, reason: str) -> ChatDatabase:
        """Go on in memory, with what can be read of the file."""
        self._is_saved = False
        self._notices.append((ChatNotice.NOT_SAVED, reason))
        database = open_memory()
        if copy_readable(self._path, database.connection):
            migrate(database.connection)
            return ChatDatabase(database.connection, self._has_words(database.connection))
        return database

    @staticmethod
    def _has_words(connection: sqlite3.Connection) -> bool:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name='words'").fetchone()
        return found is not None

    def _run(self, action: _Action[_Result], *, is_durable: bool = False) -> _Result:
        """Carry out an action as one transaction, in memory if the file fails.

        Durable is one wait for the drive; otherwise the system writes when it likes, in order.
        """
        try:
            return self._transact(action, is_durable=is_durable)
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.DatabaseError as error:
            if not self._is_saved:
                raise
            self._database.connection.close()
            self._database = (
                self._open(is_suspect=True) if is_damage(error) else self._open_memory(str(error))
            )
            return self._transact(action, is_durable=is_durable)

    def _transact(self, action: _Action[_Result], *, is_durable: bool) -> _Result:
        connection = self._database.connection
        connection.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
        connection.execute("BEGIN")
        try:
            result = action(connection)
            connection.execute("COMMIT")
        except BaseException:
            # A failed commit, and some failures before it, have already ended the transaction.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _text(self, statement: str, chat_id: int) -> str:
        """Return the one text that a chat has of a kind; empty if it has none."""
        row = self._run(lambda connection: connection.execute(statement, (chat_id,)).fetchone())
        return row[0] if row else ""

    def _change(self, chat_id: int, statement: str, values: tuple[object, ...]) -> None:
        self._touch(chat_id)
        self._run(lambda connection: connection.execute(statement, values), is_durable=True)

    def _touch(self, *chat_ids: int) -> None:
        """Note chats whose state in the file may be older than in memory."""
        if self._is_saved:
            # Only what happens from the last good write on has to be carried over.
            self._touched.clear()
        self._touched.update(chat_ids)

    def _new_id(self) -> int:
        """Return an id that is newer than all others, in microseconds since 1970."""
        self._last_id = max(int(self._now() * 1e6), self._last_id + 1)
        return self._last_id

    def _tidy(self) -> None:
        """End answers that were cut off, and remove what was deleted long ago."""

        def tidy(_: sqlite3.Connection) -> None:
            end_growing(self._database)
            remove_deleted(self._database, self._now() - UNDO_TIME_S)

        self._run(tidy)


def _packed(token_ids: Sequence[int]) -> bytes:
    """Return ids as the bytes that ``chat_rows`` unpacks."""
    return array("i", token_ids).tobytes()


def _packed_stats(stats: GenerationStats | None) -> bytes | None:
    return msgspec.msgpack.encode(stats) if stats is not None else None
