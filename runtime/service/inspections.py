"""Inspections that are kept while nothing of what they read has changed: sliders ask many times."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import MANIFEST_NAME

MAX_KEPT = 4
MAX_FILES = 5000
"""A folder of more is looked at anew each time."""

Signature = tuple[tuple[str, int, int, int, int], ...]
"""Name, size, times of change and number of each file."""
Inspect = Callable[[str, str], Inspection]


class Inspections:
    """Inspects, or returns what was found before if no file has changed since.

    Kept are models without problems that lie where they were asked for. What decides is size,
    times and number of every file of the folder and of every manifest of a prepared copy.

    Threads: any may call it.
    """

    def __init__(self, inspect: Inspect) -> None:
        self._inspect = inspect
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[Signature, Inspection]] = {}

    def __call__(self, folder: str, prepared_folder: str) -> Inspection:
        """Return what lies in a folder, with its copies."""
        key = folder, prepared_folder
        before = signature_of(folder, prepared_folder)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and before is not None and kept[0] == before:
            return kept[1]
        found = self._inspect(folder, prepared_folder)
        is_here = found.report.folder == folder and not found.report.problems
        # What changed while it was read is read again the next time.
        if before is not None and is_here and signature_of(folder, prepared_folder) == before:
            with self._lock:
                self._kept.pop(key, None)
                self._kept[key] = before, found
                while len(self._kept) > MAX_KEPT:
                    self._kept.pop(next(iter(self._kept)))
        return found


def signature_of(folder: str, prepared_folder: str) -> Signature | None:
    """Return what changes with any file of a model and of its copies; None if it cannot be told."""
    place = Path(folder)
    try:
        found = [_entry(path) for path in _files(place if place.is_dir() else place.parent)]
        found += [_entry(path) for path in _manifests(prepared_folder)]
    except OSError:
        return None
    return tuple(found) if len(found) <= MAX_FILES else None


def _files(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names[: MAX_FILES + 1]:
        yield folder / name


def _manifests(prepared_folder: str) -> Iterator[Path]:
    root = Path(prepared_folder)
    if not prepared_folder or not root.is_dir():
        return
    for folder in _files(root):
        manifest = folder / MANIFEST_NAME
        if manifest.is_file():
            yield manifest


def _entry(path: Path) -> tuple[str, int, int, int, int]:
    told = path.stat()
    return str(path), told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino
