"""The hub's cache: which folder in it is the model.

::

    hub/models--org--name/refs/main           the hash of the current snapshot
                         /snapshots/HASH/...  links to ../../blobs
                         /blobs/...           the contents
"""

from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import is_file, read_start
from runtime.inspect.gguf.places import gguf_below, names_in
from runtime.inspect.listing import CONFIG_NAME, MAX_CHILDREN, list_names

HUB_NAME = "hub"
PREFIX = "models--"
_INNER_NAMES = ("snapshots", "blobs", "refs")


def repository_of(path: Path) -> Path:
    """Return the cached model that ``path`` is an inner part of, else ``path`` itself."""
    for inner in (path, path.parent):
        if inner.name in _INNER_NAMES and inner.parent.name.startswith(PREFIX):
            is_snapshot = inner.name == "snapshots" and inner != path
            return path if is_snapshot else inner.parent
    return path


def repository_holding(path: Path) -> Path | None:
    """Return the cached model that holds a file, which may lie in a folder of its snapshot."""
    for folder in path.parents[:3]:
        if folder.name == "snapshots" and folder.parent.name.startswith(PREFIX):
            return folder.parent
    return None


def find_cached(hub: Path) -> list[Path]:
    """Return the current snapshot of each model in a cache's own folder."""
    try:
        names = list_names(hub)[:MAX_CHILDREN]
    except LarderError:
        return []
    cached = [find_snapshot(hub / name) for name in names if name.startswith(PREFIX)]
    return [snapshot for found in cached for snapshot in found]


def find_snapshot(repository: Path) -> list[Path]:
    """Return the snapshot that ``main`` names, else the newest that holds a model, else nothing."""
    try:
        main = read_start(repository / "refs" / "main", 80).decode("ascii", "replace").strip()
    except (FileNotFoundError, LarderError):
        main = ""
    snapshots = snapshots_of(repository)
    usable = [item for item in snapshots if is_file(item / CONFIG_NAME) or gguf_below(item)]
    named = [item for item in usable if item.name == main]
    return named or sorted(usable, key=_modified_s)[-1:]


def snapshots_of(repository: Path) -> list[Path]:
    """Return the snapshots of a cached model, whatever they hold."""
    folder = repository / "snapshots"
    return [folder / name for name in names_in(folder)[:MAX_CHILDREN]]


def _modified_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
