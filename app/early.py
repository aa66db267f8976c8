"""What has to be in force before Qt is imported: version check, language and crash log."""

import faulthandler
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from app.text import languages
from app.text.translate import use_translations

MIN_VERSION = (3, 11)
MAX_LOG_BYTES = 256 << 10


def is_version_supported(version: tuple[int, int]) -> bool:
    """Whether the program is made for this version of Python; newer ones are given a try."""
    return version >= MIN_VERSION


def speak(environment: Mapping[str, str]) -> None:
    """Take the terminal's language; a window takes the person's choice later."""
    known = languages.known_languages([languages.SHIPPED])
    code = languages.best_language(languages.environment_languages(environment), known)
    use_translations(languages.translations_for(code, known))


def keep_crash_log(path: Path) -> IO[str] | None:
    """Have the stacks of a crash written to a file, which has to stay open to the end.

    Returns None, with the stacks going to the error stream if there is one, where the file cannot
    be written.
    """
    try:
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".old.log"))
        log = open_log(path)
    except OSError:
        # A program without a console has no error stream either.
        if sys.stderr is not None:
            faulthandler.enable()
        return None
    faulthandler.enable(log)
    return log


def open_log(path: Path) -> IO[str]:
    """Open a log to add to it, made with its folder for this person alone where it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    return path.open("a", encoding="utf-8")


def close_crash_log(log: IO[str]) -> None:
    """End the writing of stacks and close the file."""
    faulthandler.disable()
    log.close()
