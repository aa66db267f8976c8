"""What would go if a model were deleted: which folder, how large, and what else lies in it."""

import os
import stat
from pathlib import Path

from runtime.inspect import hub_cache
from runtime.inspect.files import shown
from runtime.inspect.gguf.parts import models_among
from runtime.inspect.gguf.places import gguf_below, is_gguf
from runtime.inspect.listing import CONFIG_NAME, has_weights
from runtime.inspect.weigh_files import is_alone, size_of, weigh_files
from runtime.protocol.search import DeletionObstacle, FolderWeight

MAX_FILES = 20_000
"""A model has far fewer; a folder with more is something else too."""


def weigh_model(folder: str) -> FolderWeight:
    """Return what deleting a model would take away; never raises for what lies on a drive.

    A snapshot in the hub's cache stands for its repository, whose ``blobs`` hold the contents. Of
    a link nothing but the link would go. Of a model in GGUF its files go, for others lie beside it.
    """
    path = Path(folder)
    num_others = 0
    if is_gguf(path) and hub_cache.repository_of(path) == path:
        repository = hub_cache.repository_holding(path)
        if repository is None or not is_alone(repository, path):
            return weigh_files(path, repository)
        path = repository
    elif _whole(path) != path:
        num_others = len(gguf_below(path))
        path = _whole(path)
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
    return _weigh(path, num_others, is_cached=path.name.startswith(hub_cache.PREFIX))


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


def _weigh(path: Path, num_others: int, *, is_cached: bool) -> FolderWeight:
    num_bytes = num_files = num_unreadable = 0
    num_models = num_others

    def note(_: OSError) -> None:
        nonlocal num_unreadable
        num_unreadable += 1

    for inner, _, names in os.walk(path, onerror=note):
        is_model = CONFIG_NAME in names and has_weights(names) and Path(inner) != path
        if not is_cached:
            num_models += is_model + len(models_among(names))
        for name in names:
            num_files += 1
            num_bytes += size_of(Path(inner, name))
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
