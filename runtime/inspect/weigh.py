"""What would go if a model were deleted: which folder, how large, and what else lies in it."""

import os
import stat
from pathlib import Path

from runtime.inspect import hub_cache
from runtime.inspect.files import shown
from runtime.inspect.listing import CONFIG_NAME, has_weights
from runtime.protocol.search import DeletionObstacle, FolderWeight

MAX_FILES = 20_000
"""A model has far fewer; a folder with more is something else too."""


def weigh_model(folder: str) -> FolderWeight:
    """Return what deleting a model would take away; never raises for what lies on a drive.

    A snapshot in the hub's cache stands for its repository, whose ``blobs`` hold the contents. Of
    a link nothing but the link would go.
    """
    path = _whole(Path(folder))
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return FolderWeight(folder=shown(str(path)), obstacle=DeletionObstacle.NOT_THERE)
    if stat.S_ISLNK(mode):
        target = shown(str(path.resolve()))
        return FolderWeight(folder=shown(str(path)), num_files=1, link_target=target)
    if _is_place(path) or not stat.S_ISDIR(mode):
        # A file lies among others, some of which may be parts of the same model.
        return FolderWeight(folder=shown(str(path)), obstacle=DeletionObstacle.NOT_A_MODEL_ALONE)
    return _weigh(path, is_cached=path.name.startswith(hub_cache.PREFIX))


def _whole(path: Path) -> Path:
    """Return the folder that holds everything of a model."""
    repository = path.parent.parent
    if path.parent.name == "snapshots" and repository.name.startswith(hub_cache.PREFIX):
        return repository
    return path


def _is_place(path: Path) -> bool:
    """Whether a folder is a drive, the person's home, or above it."""
    home = Path("~").expanduser()
    return path in (home, *home.parents) or os.path.ismount(path)


def _weigh(path: Path, *, is_cached: bool) -> FolderWeight:
    num_bytes = num_files = num_models = num_unreadable = 0

    def note(_: OSError) -> None:
        nonlocal num_unreadable
        num_unreadable += 1

    for inner, _, names in os.walk(path, onerror=note):
        is_model = CONFIG_NAME in names and has_weights(names)
        num_models += is_model and Path(inner) != path and not is_cached
        for name in names:
            num_files += 1
            num_bytes += _size(Path(inner, name))
        if num_files > MAX_FILES:
            break
    obstacle = None
    if num_models or num_files > MAX_FILES:
        obstacle = DeletionObstacle.NOT_A_MODEL_ALONE
    elif num_unreadable:
        obstacle = DeletionObstacle.UNREADABLE
    return FolderWeight(
        folder=shown(str(path)), num_bytes=num_bytes, num_files=num_files, obstacle=obstacle
    )


def _size(path: Path) -> int:
    """Return the bytes of a file; a link has none that would go."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
