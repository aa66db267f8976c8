"""The log of a process: one UTF-8 file that is rotated by size at start."""

import contextlib
import logging
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

MAX_LOG_BYTES = 2 * 1024 * 1024
NUM_OLD_LOGS = 3

_logger = logging.getLogger(__name__)


def open_log(path: Path) -> int:
    """Return a handle that appends to the log, after moving away one that has grown too long.

    Raises ``OSError`` if the place cannot be written. A log that another process holds open and
    that therefore cannot be moved is continued.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size >= MAX_LOG_BYTES:
        _rotate(path)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _rotate(path: Path) -> None:
    """Number the old logs up by one; the oldest is lost."""
    names = [path, *(path.with_suffix(f".{age}.log") for age in range(1, NUM_OLD_LOGS + 1))]
    for older, newer in reversed(list(zip(names[1:], names[:-1], strict=True))):
        if newer.exists():
            try:
                newer.replace(older)
            except OSError as error:
                _logger.info("log %s stays where it is: %s", newer.name, error)


@contextlib.contextmanager
def logging_to(stream: TextIO) -> Iterator[None]:
    """Send all log records to a stream for a while."""
    root = logging.getLogger()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    )
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


class ErrorLog:
    """Writes unexpected errors to the log and says where they can be found.

    Threads: any thread may call any method.
    """

    def __init__(self, place: str = "") -> None:
        self._place = place

    def record(self, error: BaseException) -> str:
        """Log an error with its stack; return the reference for an ``ErrorReport``."""
        entry = uuid.uuid4().hex[:8]
        _logger.error("unexpected error, entry %s", entry, exc_info=error)
        return f"{self._place}, entry {entry}" if self._place else f"entry {entry}"
