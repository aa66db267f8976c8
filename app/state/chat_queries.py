"""Statements over all chats: the list and the search, tidying up, copying to a file."""

from collections.abc import Iterable

from app.state.chat_database import ChatDatabase
from app.state.chat_values import AnswerEnd, ChatDetails, ChatHeading

_MIN_INDEXED_LENGTH = 3
"""The full-text table knows groups of three characters."""
_ALL = (
    "SELECT chat_id, title, changed_at_s, is_pinned, folder FROM chats WHERE deleted_at_s IS NULL"
    " ORDER BY is_pinned DESC, changed_at_s DESC, chat_id DESC"
)
_BY_WORDS = (
    "SELECT chat_id, title, changed_at_s, is_pinned, folder FROM chats"
    " WHERE deleted_at_s IS NULL AND (title LIKE :like ESCAPE '\\'"
    "  OR chat_id IN (SELECT messages.chat_id FROM words"
    "  JOIN messages ON messages.message_id = words.rowid WHERE words MATCH :words))"
    " ORDER BY is_pinned DESC, changed_at_s DESC, chat_id DESC"
)
_BY_TEXT = (
    "SELECT chat_id, title, changed_at_s, is_pinned, folder FROM chats"
    " WHERE deleted_at_s IS NULL AND (title LIKE :like ESCAPE '\\'"
    "  OR chat_id IN (SELECT chat_id FROM messages WHERE text LIKE :like ESCAPE '\\'))"
    " ORDER BY is_pinned DESC, changed_at_s DESC, chat_id DESC"
)
_DETAILS = (
    "SELECT title, changed_at_s, is_pinned, folder, preset, summary, told_from_id FROM chats"
    " WHERE chat_id=?"
)
_REMOVE_WORDS = (
    "DELETE FROM words WHERE rowid IN (SELECT message_id FROM messages"
    " WHERE chat_id IN (SELECT chat_id FROM chats WHERE deleted_at_s < ?))"
)
_REMOVE = (
    "DELETE FROM messages WHERE chat_id IN (SELECT chat_id FROM chats WHERE deleted_at_s < ?)",
    "DELETE FROM drafts WHERE chat_id IN (SELECT chat_id FROM chats WHERE deleted_at_s < ?)",
    "DELETE FROM chats WHERE deleted_at_s < ?",
)
_COPY = tuple(
    f"INSERT OR {rule} INTO disk.{table} SELECT * FROM main.{table}{condition}"  # noqa: S608 - fixed
    for table in ("chats", "messages", "drafts")
    for rule, condition in (
        ("IGNORE", ""),
        ("REPLACE", " WHERE chat_id IN (SELECT chat_id FROM temp.touched)"),
    )
)
_COPY_WORDS = "INSERT OR REPLACE INTO disk.words (rowid, text) SELECT rowid, text FROM main.words"


def headings(database: ChatDatabase, wanted: str) -> list[ChatHeading]:
    """Return the chats, pinned ones first, then newest first; those with ``wanted`` if it is there.

    It is looked for in titles and texts.
    """
    # SQLite ends a text at a zero character and takes no half of a surrogate pair.
    wanted = wanted.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")
    escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    values = {"like": f"%{escaped}%", "words": '"' + wanted.replace('"', '""') + '"'}
    is_indexed = database.has_words and len(wanted) >= _MIN_INDEXED_LENGTH
    statement = _ALL if not wanted else _BY_WORDS if is_indexed else _BY_TEXT
    return [
        ChatHeading(chat_id, title, changed_at_s, bool(is_pinned), folder)
        for chat_id, title, changed_at_s, is_pinned, folder in database.connection.execute(
            statement, values
        )
    ]


def details(database: ChatDatabase, chat_id: int) -> ChatDetails:
    """Return what a chat has beside its messages; without anything if there is no such chat."""
    row = database.connection.execute(_DETAILS, (chat_id,)).fetchone()
    if row is None:
        return ChatDetails("")
    title, changed_at_s, is_pinned, *others = row
    return ChatDetails(title, changed_at_s, bool(is_pinned), *others)


def index(database: ChatDatabase, message_id: int, text: str) -> None:
    """Make a text findable."""
    if database.has_words:
        database.connection.execute(
            "INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)", (message_id, text)
        )


def newest_id(database: ChatDatabase) -> int:
    """Return the highest id of chats and messages, 0 if there are none."""
    (newest,) = database.connection.execute(
        "SELECT max(coalesce((SELECT max(message_id) FROM messages), 0),"
        " coalesce((SELECT max(chat_id) FROM chats), 0))"
    ).fetchone()
    return int(newest)


def end_growing(database: ChatDatabase) -> None:
    """Mark answers as cut off that a program which is gone did not finish."""
    connection = database.connection
    for message_id, text in connection.execute(
        "SELECT message_id, text FROM messages WHERE ending = 'growing'"
    ).fetchall():
        index(database, message_id, text)
        connection.execute(
            "UPDATE messages SET ending=? WHERE message_id=?",
            (AnswerEnd.CUT_OFF.value, message_id),
        )


def remove_deleted(database: ChatDatabase, before_s: float) -> None:
    """Remove for good what was deleted before a time."""
    if database.has_words:
        database.connection.execute(_REMOVE_WORDS, (before_s,))
    for statement in _REMOVE:
        database.connection.execute(statement, (before_s,))


def copy_to_disk(memory: ChatDatabase, touched: Iterable[int], *, has_disk_words: bool) -> None:
    """Copy everything to the attached ``disk``; of chats in both, the touched ones win."""
    connection = memory.connection
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS touched (chat_id INTEGER)")
    connection.executemany(
        "INSERT INTO temp.touched VALUES (?)", [(chat_id,) for chat_id in touched]
    )
    for statement in _COPY:
        connection.execute(statement)
    if has_disk_words and memory.has_words:
        connection.execute(_COPY_WORDS)
