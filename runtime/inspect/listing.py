"""The entries of a folder, never more than a person's folder can hold."""

import itertools
import os
from pathlib import Path

from runtime.inspect.files import unreadable

CONFIG_NAME = "config.json"
MAX_ENTRIES = 100_000
MAX_CHILDREN = 1000


def list_names(folder: Path) -> list[str]:
    """Return the entries of a folder, sorted; at most ``MAX_ENTRIES``.

    Raises ``LarderError`` with ``FILE_UNREADABLE``.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, MAX_ENTRIES))
    except OSError as cause:
        raise unreadable(folder, cause) from cause
