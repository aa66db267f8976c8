"""What would go if a model in GGUF were deleted: its files alone, or all of its repository."""

import os
import stat
from pathlib import Path

from runtime.inspect.files import shown
from runtime.inspect.gguf.parts import first_part, part_paths
from runtime.inspect.gguf.places import gguf_below, gguf_companions, gguf_models, names_in
from runtime.inspect.hub_cache import snapshots_of
from runtime.inspect.listing import CONFIG_NAME, has_weights
from runtime.protocol.search import FolderWeight


def is_alone(repository: Path, path: Path) -> bool:
    """Whether a cached model holds nothing but the set of files that one belongs to."""
    own = first_part(path).name
    for snapshot in snapshots_of(repository):
        names = names_in(snapshot)
        if CONFIG_NAME in names and has_weights(names):
            return False
        if any(first_part(each).name != own for each in gguf_below(snapshot)):
            return False
    return True


def weigh_files(path: Path, repository: Path | None) -> FolderWeight:
    """Return what deleting the GGUF model that a file belongs to would take away.

    These are the files of its set and, where no other model lies beside it, what goes beside it. Of
    links only the links go; but in the hub's cache, whose ``repository`` is given then, those of
    all snapshots go with the contents that no other link there leads to.
    """
    gone = _files_of(path) if repository is None else _cached_files_of(path, repository)
    parts = [each for each in part_paths(path) if each in gone]
    is_link_only = repository is None and all(each.is_symlink() for each in parts)
    return FolderWeight(
        folder=shown(str(parts[0])),
        files=[shown(str(each)) for each in gone],
        num_bytes=sum(map(size_of, gone)),
        num_files=len(gone),
        link_target=shown(str(parts[0].resolve())) if is_link_only else "",
    )


def _files_of(path: Path) -> list[Path]:
    parts = [each for each in part_paths(path) if os.path.lexists(each)]
    names = names_in(path.parent)
    if len(gguf_models(path.parent, names)) > 1:
        return parts
    is_link = parts[0].is_symlink()
    beside = gguf_companions(path.parent, names)
    return parts + [each for each in beside if each.is_symlink() == is_link]


def _cached_files_of(path: Path, repository: Path) -> list[Path]:
    """Return the links of a model in all snapshots, and the contents that they alone lead to."""
    inside = Path(*path.relative_to(repository / "snapshots").parts[1:])
    every = [snapshot / inside for snapshot in snapshots_of(repository)]
    there = [each for each in every if any(map(os.path.lexists, part_paths(each)))]
    gone = [file for each in there for file in _files_of(each)]
    others = [
        Path(folder, name).resolve()
        for folder, _, names in os.walk(repository / "snapshots")
        for name in names
        if Path(folder, name) not in gone
    ]
    blobs = (repository / "blobs").resolve()
    led_to = {file.resolve() for file in gone if file.is_symlink()}.difference(others)
    return gone + sorted(each for each in led_to if each.parent == blobs and each.exists())


def size_of(path: Path) -> int:
    """Return the bytes of a file; a link has none that would go."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
