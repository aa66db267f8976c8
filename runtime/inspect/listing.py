"""The entries of a folder, never more than a person's folder can hold."""

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

from runtime.inspect.files import unreadable

CONFIG_NAME = "config.json"
MAX_ENTRIES = 100_000
MAX_CHILDREN = 1000
_WEIGHT_ENDINGS = (".safetensors", ".safetensors.index.json")


def list_names(folder: Path) -> list[str]:
    """Return the entries of a folder, sorted; at most ``MAX_ENTRIES``.

    Raises ``LarderError`` with ``FILE_UNREADABLE``.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, MAX_ENTRIES))
    except OSError as cause:
        raise unreadable(folder, cause) from cause


def has_weights(names: Iterable[str]) -> bool:
    """Whether there are weights among the entries of a folder, or a list of those to come."""
    return any(name.endswith(_WEIGHT_ENDINGS) for name in names)
