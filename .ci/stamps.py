"""A stamp is the hash of everything a result was made from, kept beside the result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from console import ROOT


def digest(files: Iterable[Path], facts: Iterable[str] = ()) -> str:
    """Hash names and contents of `files` (a missing one counts as missing) and plain facts."""
    sums = hashlib.sha256()
    for path in sorted(set(files)):
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
        sums.update(f"\0file {name}\0".encode())
        sums.update(path.read_bytes() if path.is_file() else b"missing")
    for fact in facts:
        sums.update(f"\0fact {fact}\0".encode())
    return sums.hexdigest()


def is_current(stamp: Path, value: str) -> bool:
    """Whether the stamp file holds exactly this value."""
    return stamp.is_file() and stamp.read_text(encoding="ascii").strip() == value


def write(stamp: Path, value: str) -> None:
    """Keep the value; called only after the result is complete."""
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(value + "\n", encoding="ascii")
