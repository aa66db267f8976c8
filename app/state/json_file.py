"""A JSON file that is whole or absent, never half written."""

import os
import time
from pathlib import Path

import msgspec


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step, its folders made if needed; raises ``OSError``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def pretty(value: object) -> bytes:
    """Return a value as JSON that a person can read and change."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def set_aside(path: Path) -> Path:
    """Give a file that cannot be used another name, beside it, and return that."""
    aside = path.with_name(f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}{path.suffix}")
    path.replace(aside)
    return aside
