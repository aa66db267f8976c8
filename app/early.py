"""What has to be in force before Qt is imported: the version check and the crash log."""

import faulthandler
import sys
from pathlib import Path
from typing import IO

MIN_VERSION = (3, 11)
MAX_LOG_BYTES = 256 << 10


def is_version_supported(version: tuple[int, int]) -> bool:
    """Whether the program is made for this version of Python; newer ones are given a try."""
    return version >= MIN_VERSION


def keep_crash_log(path: Path) -> IO[str] | None:
    """Have the stacks of a crash written to a file, which has to stay open to the end.

    Returns None, with the stacks going to the error stream if there is one, where the file cannot
    be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".old.log"))
        path.touch(mode=0o600)
        log = path.open("a", encoding="utf-8")
    except OSError:
        # A program without a console has no error stream either.
        if sys.stderr is not None:
            faulthandler.enable()
        return None
    faulthandler.enable(log)
    return log


def close_crash_log(log: IO[str]) -> None:
    """End the writing of stacks and close the file."""
    faulthandler.disable()
    log.close()
