"""The note in an unfinished copy that says what it is going to be."""

import json
from collections.abc import Mapping
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.bounded_json import JsonRefusedError, parse_object
from runtime.inspect.files import read_small, shown
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME
from runtime.prepare.disk import PART_ENDING, replacing
from runtime.prepare.lock import LOCK_NAME
from runtime.protocol.errors import ErrorCode

_MAX_JOURNAL_BYTES = 64_000


def begin(folder: Path, identity: Mapping[str, str]) -> None:
    """Make ``folder`` an unfinished copy of this identity, or see that it is one already.

    Raises ``COPY_PLACE_REFUSED`` for a folder with anything else in it, which is left as it is.
    """
    journal = folder / JOURNAL_NAME
    try:
        found = parse_object(read_small(journal, _MAX_JOURNAL_BYTES))
    except FileNotFoundError:
        ours = {LOCK_NAME, MANIFEST_NAME, JOURNAL_NAME + PART_ENDING}
        is_free = all(path.name in ours for path in folder.iterdir())
        if not is_free and not (folder / MANIFEST_NAME).exists():
            raise place_refused(folder, "it is not empty") from None
    except JsonRefusedError as cause:
        raise place_refused(folder, "its note of what it is going to be is damaged") from cause
    else:
        if found != dict(identity):
            raise place_refused(folder, "it holds an unfinished copy of something else")
        return
    with replacing(journal) as file:
        file.write(json.dumps(dict(identity)).encode())


def is_unfinished(folder: Path) -> bool:
    """Whether a preparation of ``folder`` was begun and did not end."""
    return (folder / JOURNAL_NAME).is_file()


def end(folder: Path) -> None:
    """Remove the note; the manifest is there by now."""
    (folder / JOURNAL_NAME).unlink(missing_ok=True)


def kept_bytes(folder: str) -> int:
    """Return what the finished files of an unfinished copy take."""
    root = Path(folder)
    if not is_unfinished(root):
        return 0
    return sum(path.stat().st_size for path in root.glob("*.safetensors"))


def place_refused(folder: Path, reason: str) -> LarderError:
    """Return why a copy cannot be put into a folder."""
    return LarderError(ErrorCode.COPY_PLACE_REFUSED, folder=shown(str(folder)), reason=reason)
