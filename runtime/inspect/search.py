"""Looking for models below a place, without circles and never more than a tree can hold."""

import itertools
import os
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runtime.inspect import hub_cache
from runtime.inspect.files import is_unicode
from runtime.inspect.gguf.places import gguf_below, gguf_models, is_gguf, names_in
from runtime.inspect.listing import CONFIG_NAME, MAX_ENTRIES, has_weights
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME
from runtime.inspect.place import real_place
from runtime.protocol.search import RootState

MAX_FOLDERS = 100_000
"""Of one place; what lies behind them is not looked at, and the search says so."""
MAX_DEPTH = 12
_PASSED_OVER = ("datasets--", "spaces--")
"""What the hub's cache holds beside models."""
_JUNCTION = 0xA0000003
"""How Windows marks a folder that leads elsewhere and is no link by its kind."""
FileId = tuple[int, int]


class Sight(NamedTuple):
    """What is known of a folder or file that was looked at."""

    is_model: bool
    is_linked: bool
    """Whether the path to it led over a link."""


Seen = dict[FileId, Sight]
"""The folders and files that were looked at."""


class TreeSearch:
    """The search below one place; iterate over it once, then read what it counted.

    Yields for each folder that was looked at the models that are new in it, so that the caller can
    stop between any two: a folder for a checkpoint, a file for a model in GGUF. ``seen`` is shared
    by the places of one search: a folder or file that several of them or links lead to is looked at
    once, and once more where it really lies if a link led there before, so that whoever reads the
    reports can show it there. A model's own folders are not looked into, nor are hidden ones and
    prepared copies.
    """

    def __init__(self, root: str, seen: Seen) -> None:
        self._root = Path(root)
        self._seen = seen
        self._models: set[FileId] = set()
        self.state = RootState.MISSING
        self.num_folders = 0
        self.num_unreadable = 0
        self.is_complete = True
        """Whether no limit was met."""

    @property
    def num_models(self) -> int:
        """The models below this place, those included that were found from another one."""
        return len(self._models)

    def __iter__(self) -> Iterator[list[Path]]:
        """Look at one folder after the other, near ones first."""
        if is_gguf(self._root):
            self.state = RootState.THERE
            yield self._new_among([self._root], is_linked=bool(real_place(str(self._root))))
            return
        is_linked = bool(real_place(str(self._root)))
        waiting: deque[tuple[Path, int, bool]] = deque([(self._root, 0, is_linked)])
        while waiting:
            folder, depth, is_linked = waiting.popleft()
            if self.num_folders >= MAX_FOLDERS:
                self.is_complete = False
                return
            if not self._enter(folder, is_linked=is_linked):
                continue
            self.num_folders += 1
            names, inner, links = self._list(folder)
            models = _models_in(folder, names)
            yield self._new_among(models, folder, is_linked=is_linked)
            if (models and models[0].is_dir()) or _is_closed(folder, names):
                continue
            if depth == MAX_DEPTH:
                self.is_complete = self.is_complete and not inner
                continue
            waiting.extend((folder / name, depth + 1, is_linked or name in links) for name in inner)

    def _enter(self, folder: Path, *, is_linked: bool) -> bool:
        """Whether a path leads to a folder that was not looked at, links followed.

        One that only links led to before is looked at once more where it really lies.
        """
        identity = _identity(folder, stat.S_IFDIR)
        if identity is None:
            return False
        if folder == self._root:
            self.state = RootState.THERE
        before = self._seen.get(identity)
        if before is not None and (is_linked or not before.is_linked):
            if before.is_model:
                self._models.add(identity)
            return False
        self._seen[identity] = Sight(is_model=False, is_linked=is_linked)
        return True

    def _new_among(
        self, models: list[Path], folder: Path | None = None, *, is_linked: bool
    ) -> list[Path]:
        """Return the models that were not found before, and count them all.

        A cached checkpoint is remembered by its repository, which is ``folder``, too.
        """
        new: list[Path] = []
        for model in models:
            is_folder = model.is_dir()
            identity = _identity(model, stat.S_IFDIR if is_folder else stat.S_IFREG)
            if identity is None:
                continue
            before = self._seen.get(identity)
            is_by_link = is_linked or model.is_symlink()
            if model == folder or before is None or (before.is_linked and not is_by_link):
                new.append(model)
                self._seen[identity] = Sight(is_model=True, is_linked=is_by_link)
            self._models.add(identity)
            own = _identity(folder, stat.S_IFDIR) if is_folder and folder is not None else None
            if own is not None:
                self._seen[own] = Sight(is_model=True, is_linked=is_linked)
        return new

    def _list(self, folder: Path) -> tuple[list[str], list[str], set[str]]:
        """Return the names in a folder, those to look into, sorted, and which of them are links."""
        state = RootState.UNREADABLE
        names: list[str] = []
        inner: list[str] = []
        links: set[str] = set()
        try:
            with os.scandir(folder) as entries:
                for entry in itertools.islice(entries, MAX_ENTRIES):
                    names.append(entry.name)
                    if _is_wanted(entry.name) and (entry.is_symlink() or entry.is_dir()):
                        inner.append(entry.name)
                        if _leads_elsewhere(entry):
                            links.add(entry.name)
            state = RootState.THERE if names else RootState.EMPTY
        except OSError:
            self.num_unreadable += 1
        if folder == self._root:
            self.state = state
        return names, sorted(inner), links


def _identity(path: Path, kind: int) -> FileId | None:
    """Return what tells a folder or file from all others; None if there is none of that kind."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_IFMT(found.st_mode) == kind else None


def _leads_elsewhere(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a link or, on Windows, a junction."""
    if entry.is_symlink():
        return True
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return getattr(found, "st_reparse_tag", 0) == _JUNCTION


def _is_wanted(name: str) -> bool:
    return not name.startswith((".", *_PASSED_OVER)) and is_unicode(name)


def _models_in(folder: Path, names: list[str]) -> list[Path]:
    """Return the models that a folder is and holds or, in the hub's cache, stands for.

    A checkpoint comes first.
    """
    if _is_copy(names):
        return []
    if _is_cached(folder, names):
        return [model for found in hub_cache.find_snapshot(folder) for model in _cached_in(found)]
    return _checkpoint_in(folder, names) + gguf_models(folder, names)


def _cached_in(snapshot: Path) -> list[Path]:
    return _checkpoint_in(snapshot, names_in(snapshot)) + gguf_below(snapshot)


def _checkpoint_in(folder: Path, names: list[str]) -> list[Path]:
    return [folder] if CONFIG_NAME in names and has_weights(names) else []


def _is_closed(folder: Path, names: list[str]) -> bool:
    """Whether nothing in a folder is looked for: a copy of ours, or a cached model without any."""
    return _is_copy(names) or _is_cached(folder, names)


def _is_copy(names: list[str]) -> bool:
    """Whether a folder holds a prepared copy, finished or not."""
    return MANIFEST_NAME in names or JOURNAL_NAME in names


def _is_cached(folder: Path, names: list[str]) -> bool:
    """Whether a folder is a model's in the hub's cache."""
    return folder.name.startswith(hub_cache.PREFIX) and "snapshots" in names
