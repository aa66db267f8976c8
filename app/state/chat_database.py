"""The database file of the chats: opening, the schema and its migrations, damage."""

import contextlib
import dataclasses
import sqlite3
from pathlib import Path

from app.state.json_file import set_aside
from app.state.thinking import split_thinking

SCHEMA_VERSION = 6
_BUSY_WAIT_S = 1.0
"""How long the window may wait for another program that writes chats."""
_MAX_CHECKED_BYTES = 16 << 20
"""A larger file is read whole only when something else says that it is damaged."""
_DAMAGE = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})

# Messages are a tree in each chat: versions of an answer, or wordings of a question, have the same
# parent. ``leaf_id`` is the end of the branch that is shown. Ids grow with time.
_MIGRATIONS = (
    """
    CREATE TABLE chats (
        chat_id INTEGER PRIMARY KEY,
        title TEXT NOT NULL,
        changed_at_s REAL NOT NULL,
        deleted_at_s REAL,
        leaf_id INTEGER
    );
    CREATE INDEX chats_by_time ON chats (changed_at_s);
    CREATE TABLE messages (
        message_id INTEGER PRIMARY KEY,
        chat_id INTEGER NOT NULL,
        parent_id INTEGER,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        token_ids BLOB NOT NULL,
        ending TEXT NOT NULL,
        stats BLOB,
        model_name TEXT NOT NULL
    );
    CREATE INDEX messages_by_chat ON messages (chat_id);
    CREATE INDEX messages_growing ON messages (message_id) WHERE ending = 'growing';
    CREATE TABLE drafts (chat_id INTEGER PRIMARY KEY, text TEXT NOT NULL);
    """,
    """
    ALTER TABLE messages ADD COLUMN thinking TEXT NOT NULL DEFAULT '';
    UPDATE messages SET thinking = thinking_of(text), text = answer_of(text)
        WHERE role = 'assistant' AND text LIKE '%think>%';
    """,
    "ALTER TABLE chats ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;",
    # Older messages are not told to the model.
    "ALTER TABLE chats ADD COLUMN told_from_id INTEGER NOT NULL DEFAULT 0;",
    """
    ALTER TABLE chats ADD COLUMN preset TEXT NOT NULL DEFAULT '';
    ALTER TABLE chats ADD COLUMN folder TEXT NOT NULL DEFAULT '';
    """,
    # What the model is told in place of the messages that it is not.
    "ALTER TABLE chats ADD COLUMN summary TEXT NOT NULL DEFAULT '';",
)
_WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, tokenize='trigram')"


class NewerDatabaseError(Exception):
    """The file was written by a newer version of this program."""


@dataclasses.dataclass(frozen=True, slots=True)
class ChatDatabase:
    """An open database with the current schema."""

    connection: sqlite3.Connection
    has_words: bool
    """The full-text table is there."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that the file itself is broken."""
    return getattr(error, "sqlite_errorname", "").startswith(tuple(_DAMAGE))


def open_memory() -> ChatDatabase:
    """Return an empty database that lasts as long as it is open."""
    return _ready(sqlite3.connect(":memory:", isolation_level=None))


def open_file(path: Path, *, is_suspect: bool = False) -> ChatDatabase:
    """Open or make the file; a suspect one is read whole.

    Raises ``sqlite3.DatabaseError`` if it is damaged or cannot be written, ``OSError`` if its
    folder cannot be made, ``NewerDatabaseError``.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _keep_private(path)
    connection = sqlite3.connect(path, timeout=_BUSY_WAIT_S, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        if is_suspect or path.stat().st_size <= _MAX_CHECKED_BYTES:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise _damaged(verdict)
        return _ready(connection)
    except BaseException:
        connection.close()
        raise


def _keep_private(path: Path) -> None:
    """Have the file, its journals with it, readable for its person alone; leave it if that fails.

    Such a file is on a drive without rights, or somebody else's.
    """
    with contextlib.suppress(OSError):
        if not path.exists():
            path.touch(mode=0o600)
        path.chmod(0o600)


def copy_readable(path: Path, target: sqlite3.Connection) -> bool:
    """Copy what can be read of a file that cannot be written; return whether it worked."""
    if not path.is_file():
        return False
    for options in ("mode=ro", "mode=ro&immutable=1"):
        with contextlib.suppress(sqlite3.Error):
            source = sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True)
            with contextlib.closing(source):
                (version,) = source.execute("PRAGMA user_version").fetchone()
                if 0 < version <= SCHEMA_VERSION:
                    source.backup(target)
                    return True
    return False


def set_database_aside(path: Path) -> Path:
    """Rename a damaged file, its journal beside it, and return the new name.

    A journal that lost its file goes aside as well: it belongs to no other.
    """
    journals = [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]
    there = [journal for journal in journals if journal.exists()]
    if not there and not path.exists():
        return path
    path.touch(mode=0o600)
    aside = set_aside(path)
    for journal in there:
        journal.replace(aside.with_name(aside.name + journal.name.removeprefix(path.name)))
    return aside


def _damaged(verdict: str) -> sqlite3.DatabaseError:
    """Return the error for a file that opens and is broken inside."""
    error = sqlite3.DatabaseError(verdict)
    error.sqlite_errorname = "SQLITE_CORRUPT"
    return error


def _ready(connection: sqlite3.Connection) -> ChatDatabase:
    """Bring the schema up to date."""
    migrate(connection)
    return ChatDatabase(connection, _make_words(connection))


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables up to date; raise ``NewerDatabaseError`` if they are newer.

    The first schema kept the thinking of an answer in its text.
    """
    connection.create_function("thinking_of", 1, lambda text: split_thinking(text).thinking)
    connection.create_function("answer_of", 1, lambda text: split_thinking(text).answer)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise NewerDatabaseError(f"schema {version}, known is {SCHEMA_VERSION}")
    for number, statements in enumerate(_MIGRATIONS[version:], start=version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {statements} PRAGMA user_version={number}; COMMIT;"
        )


def _make_words(connection: sqlite3.Connection) -> bool:
    """Make the full-text table; False where SQLite was built without it."""
    try:
        connection.execute(_WORDS)
    except sqlite3.OperationalError as error:
        if "no such module" in str(error) or "no such tokenizer" in str(error):
            return False
        raise
    return True
