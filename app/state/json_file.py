"""Files that are whole or absent, never half written: ours, and those that a person exports."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step, for its person alone, folders made; raises ``OSError``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(path, data, _open_private)


def export_whole(path: Path, data: bytes) -> None:
    """Write a file that a person wants somewhere; one that was there stays if this cannot be done.

    Raises ``OSError``.
    """
    _replace(path.resolve(), data, None)


def _replace(path: Path, data: bytes, opener: Callable[[str, int], int] | None) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with open(temporary, "wb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _open_private(path: str, flags: int) -> int:
    """Open a file that its person alone may read, if it has to be made."""
    return os.open(path, flags, 0o600)


def pretty(value: object) -> bytes:
    """Return a value as JSON that a person can read and change."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def set_aside(path: Path) -> Path:
    """Give a file that cannot be used another name, beside it, and return that."""
    aside = path.with_name(f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}{path.suffix}")
    path.replace(aside)
    return aside
