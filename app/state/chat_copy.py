"""The copy of the chats that is kept for the day on which their file is damaged."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

_NAME = "chats.backup.db"


def copy_of(path: Path) -> Path:
    """Return where the copy of a file of chats lies: beside it."""
    return path.with_name(_NAME)


def is_lost(path: Path) -> bool:
    """Whether there is a copy, and in place of its file nothing or an empty one.

    SQLite would take that for a new file.
    """
    return copy_of(path).is_file() and not (path.exists() and path.stat().st_size)


def is_copy_due(path: Path) -> bool:
    """Whether chats were written that the copy does not have; clocks that jump do not matter."""
    copy = copy_of(path)
    try:
        return path.is_file() and not (
            copy.is_file() and copy.stat().st_mtime_ns == _last_change_ns(path)
        )
    except OSError:
        return False


def copy_chats(path: Path) -> bool:
    """Replace the copy by one of the file as it is now; False leaves the copy before.

    Others may write meanwhile. A file that is damaged is never copied. The time of the copy is that
    of the last change in it.
    """
    copy = copy_of(path)
    fresh = copy.with_name(f"{copy.name}.{os.getpid()}.new")
    try:
        changed_ns = _last_change_ns(path)
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o600)
        source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
        with contextlib.closing(source), contextlib.closing(sqlite3.connect(fresh)) as target:
            source.backup(target)
            # One file, without a journal beside it.
            target.execute("PRAGMA journal_mode=DELETE")
            if not _is_sound(target):
                return False
        _make_durable(fresh)
        os.utime(fresh, ns=(changed_ns, changed_ns))
        fresh.replace(copy)
    except (sqlite3.Error, OSError):
        return False
    finally:
        for leftover in (fresh, *(Path(f"{fresh}{end}") for end in ("-wal", "-shm", "-journal"))):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)
    return True


def restore_chats(path: Path) -> float | None:
    """Put the copy in the place of the file, which has been set aside.

    Returns when the copied chats last changed, in seconds since 1970; None if there is no copy that
    is whole. Raises ``OSError`` if it cannot be written.
    """
    copy = copy_of(path)
    if not copy.is_file():
        return None
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        fresh.touch(mode=0o600)
        shutil.copyfile(copy, fresh)
        try:
            with contextlib.closing(sqlite3.connect(fresh)) as restored:
                if not _is_sound(restored):
                    return None
        except sqlite3.Error:
            return None
        _make_durable(fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return copy.stat().st_mtime


def _last_change_ns(path: Path) -> int:
    """Return when a file of chats, or the journal that it has, was written last."""
    journal = path.with_name(f"{path.name}-wal")
    # An empty one is made by opening the file.
    files = [path, journal] if journal.exists() and journal.stat().st_size else [path]
    return max(file.stat().st_mtime_ns for file in files)


def _is_sound(connection: sqlite3.Connection) -> bool:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return bool(verdict == "ok")


def _make_durable(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
