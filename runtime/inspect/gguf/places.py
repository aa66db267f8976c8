"""Where GGUF models lie: which files of a folder are one, and which go beside it."""

from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import is_file, read_start
from runtime.inspect.gguf.parts import ENDING, is_gguf_name, models_among
from runtime.inspect.listing import MAX_CHILDREN, list_names
from runtime.inspect.lookalike import GGUF_MARK


def is_gguf(path: Path) -> bool:
    """Whether a path is that of a model in a GGUF file, or of a part of one, by what it holds."""
    if not is_file(path):
        return False
    if is_gguf_name(path.name):
        return True
    try:
        return read_start(path, len(GGUF_MARK)) == GGUF_MARK
    except (FileNotFoundError, LarderError):
        return False


def gguf_models(folder: Path, names: list[str]) -> list[Path]:
    """Return for each GGUF model among the entries of a folder a file of it that is there."""
    found = [folder / name for name in models_among(names)]
    return [each for each in found if is_file(each) or each.is_symlink()]


def gguf_companions(folder: Path, names: list[str]) -> list[Path]:
    """Return the GGUF files of a folder that go beside a model, as what lets it see does."""
    found = [name for name in names if name.lower().endswith(ENDING) and not is_gguf_name(name)]
    return [folder / name for name in found]


def gguf_below(folder: Path) -> list[Path]:
    """Return the GGUF models of a folder and of those right below it.

    Repositories keep sets that were split in folders of their own.
    """
    names = names_in(folder)
    found = gguf_models(folder, names)
    for child in (folder / name for name in names[:MAX_CHILDREN]):
        if child.is_dir():
            found += gguf_models(child, names_in(child))
    return found


def names_in(folder: Path) -> list[str]:
    """Return the entries of a folder, none of one that cannot be listed."""
    try:
        return list_names(folder)
    except LarderError:
        return []
