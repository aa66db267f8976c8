"""Files that a program which was killed had begun to write: taken away at the next start."""

import contextlib
import re
import time
from pathlib import Path

_NEW = re.compile(r".+\.\d+\.new(-wal|-shm|-journal)?")
MIN_AGE_S = 3600.0
"""A younger one may belong to a program that runs."""


def remove_leftovers(*folders: Path, now_s: float | None = None) -> None:
    """Remove what nobody will finish; what cannot be removed is left."""
    oldest_s = (time.time() if now_s is None else now_s) - MIN_AGE_S
    for folder in folders:
        for path in folder.glob("*.new*"):
            with contextlib.suppress(OSError):
                if _NEW.fullmatch(path.name) and path.lstat().st_mtime < oldest_s:
                    path.unlink()
