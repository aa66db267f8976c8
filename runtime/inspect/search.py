"""Looking for model folders below a place, without circles and never more than a tree can hold."""

import itertools
import os
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect import hub_cache
from runtime.inspect.files import is_unicode
from runtime.inspect.listing import CONFIG_NAME, MAX_ENTRIES, has_weights, list_names
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME
from runtime.protocol.search import RootState

MAX_FOLDERS = 100_000
"""Of one place; what lies behind them is not looked at, and the search says so."""
MAX_DEPTH = 12
_PASSED_OVER = ("datasets--", "spaces--")
"""What the hub's cache holds beside models."""
FolderId = tuple[int, int]
Seen = dict[FolderId, bool]
"""The folders that were looked at, and whether each is a model."""


class TreeSearch:
    """The search below one place; iterate over it once, then read what it counted.

    Yields the folder of each model, and None for every other folder that was looked at, so that the
    caller can stop between any two. ``seen`` is shared by the places of one search: a folder that
    several of them or links lead to is looked at once. A model's own folders are not looked into,
    nor are hidden ones and prepared copies.
    """

    def __init__(self, root: str, seen: Seen) -> None:
        self._root = Path(root)
        self._seen = seen
        self._models: set[FolderId] = set()
        self.state = RootState.MISSING
        self.num_folders = 0
        self.num_gguf_folders = 0
        """Folders with GGUF files and no model that can be read."""
        self.num_unreadable = 0
        self.is_complete = True
        """Whether no limit was met."""

    @property
    def num_models(self) -> int:
        """The models below this place, those included that were found from another one."""
        return len(self._models)

    def __iter__(self) -> Iterator[Path | None]:
        """Look at one folder after the other, near ones first."""
        waiting: deque[tuple[Path, int]] = deque([(self._root, 0)])
        while waiting:
            folder, depth = waiting.popleft()
            if self.num_folders >= MAX_FOLDERS:
                self.is_complete = False
                return
            if not self._enter(folder):
                continue
            self.num_folders += 1
            names, inner = self._list(folder)
            model = _model_in(folder, names)
            if model is not None:
                is_new = self._enter(model) or model == folder
                self._note_model(folder, model)
                yield model if is_new else None
                continue
            yield None
            if _is_closed(folder, names):
                continue
            self.num_gguf_folders += any(name.lower().endswith(".gguf") for name in names)
            if depth == MAX_DEPTH:
                self.is_complete = self.is_complete and not inner
                continue
            waiting.extend((folder / name, depth + 1) for name in inner)

    def _enter(self, folder: Path) -> bool:
        """Whether a path leads to a folder that was not looked at, links followed."""
        identity = _identity(folder)
        if identity is None:
            return False
        if folder == self._root:
            self.state = RootState.THERE
        if identity in self._seen:
            if self._seen[identity]:
                self._models.add(identity)
            return False
        self._seen[identity] = False
        return True

    def _note_model(self, *folders: Path) -> None:
        """Remember a model; a cached one by its snapshot too."""
        identities = [identity for folder in folders if (identity := _identity(folder))]
        self._seen.update(dict.fromkeys(identities, True))
        self._models.update(identities[-1:])

    def _list(self, folder: Path) -> tuple[list[str], list[str]]:
        """Return the names in a folder, and those that may be folders to look into, sorted."""
        state = RootState.UNREADABLE
        names: list[str] = []
        inner: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in itertools.islice(entries, MAX_ENTRIES):
                    names.append(entry.name)
                    if _is_wanted(entry.name) and (entry.is_symlink() or entry.is_dir()):
                        inner.append(entry.name)
            state = RootState.THERE if names else RootState.EMPTY
        except OSError:
            self.num_unreadable += 1
        if folder == self._root:
            self.state = state
        return names, sorted(inner)


def _identity(folder: Path) -> FolderId | None:
    """Return what tells a folder from all others; None if there is no folder."""
    try:
        found = folder.stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _is_wanted(name: str) -> bool:
    return not name.startswith((".", *_PASSED_OVER)) and is_unicode(name)


def _model_in(folder: Path, names: list[str]) -> Path | None:
    """Return the model that a folder is or, in the hub's cache, stands for."""
    if _is_copy(names):
        return None
    if _is_cached(folder, names):
        found = hub_cache.find_snapshot(folder)
        return found[0] if found and has_weights(_names_in(found[0])) else None
    return folder if CONFIG_NAME in names and has_weights(names) else None


def _names_in(folder: Path) -> list[str]:
    try:
        return list_names(folder)
    except LarderError:
        return []


def _is_closed(folder: Path, names: list[str]) -> bool:
    """Whether nothing in a folder is looked for: a copy of ours, or a cached model without any."""
    return _is_copy(names) or _is_cached(folder, names)


def _is_copy(names: list[str]) -> bool:
    """Whether a folder holds a prepared copy, finished or not."""
    return MANIFEST_NAME in names or JOURNAL_NAME in names


def _is_cached(folder: Path, names: list[str]) -> bool:
    """Whether a folder is a model's in the hub's cache."""
    return folder.name.startswith(hub_cache.PREFIX) and "snapshots" in names
