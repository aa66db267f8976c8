"""Small files in which facts about this PC are kept between runs."""

import contextlib
import hashlib
import logging
import os
import threading
from pathlib import Path

MAX_FILE_BYTES = 1024 * 1024
"""A larger one is not ours."""
_LOG = logging.getLogger(__name__)
_unwritten: dict[Path, str] = {}
"""What could not be written, by its file: it counts until the process ends.

One for all, since a file has one content for whoever in the process asks for it. Threads: any; each
step is one of a dictionary.
"""


def path_of_model(folder: Path, fingerprint: str) -> Path:
    """Return where a folder keeps what is known of one model."""
    return folder / f"{hashlib.sha256(fingerprint.encode()).hexdigest()[:32]}.json"


def kept_text(path: Path) -> str:
    """Return what a file holds, or should hold and could not be written to it.

    Nothing if it cannot be read or is too large to be ours.
    """
    unwritten = _unwritten.get(path)
    if unwritten is not None:
        return unwritten
    try:
        return "" if path.stat().st_size > MAX_FILE_BYTES else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def replace_file(path: Path, content: str, what: str) -> None:
    """Write a file whole, for its person alone; where that cannot be done it is logged.

    It counts for this process all the same. Threads: any, also at once.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.touch(mode=0o600)
        temporary.write_text(content, encoding="utf-8")
        temporary.replace(path)
        _unwritten.pop(path, None)
    except OSError as error:
        _unwritten[path] = content
        _LOG.info("%s are not kept: %s", what, error)
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
