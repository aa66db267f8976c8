"""Where in what was dropped the model really lies."""

import dataclasses
import itertools
import os
import stat
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import is_file, is_unicode, read_start, shown, unreadable
from runtime.protocol.errors import ErrorCode

CONFIG_NAME = "config.json"
GGUF_MAGIC = b"GGUF"
MAX_ENTRIES = 100_000
MAX_CHILDREN = 1000
_HUB_PREFIX = "models--"
_NOT_UNICODE = "its path holds signs that are not Unicode text, so rename it first"


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A folder that can be a model, its entries, and the name it goes by."""

    folder: Path
    names: list[str]
    name: str


def find_model(folder: str) -> Place:
    """Return the folder with ``config.json``: the one given, one level below, or in a hub cache.

    Raises ``LarderError`` with ``FOLDER_NOT_FOUND``, ``FILE_UNREADABLE`` or ``NOT_A_MODEL``.
    """
    if not folder:
        raise LarderError(ErrorCode.FOLDER_NOT_FOUND, folder=folder)
    path = Path(folder)
    try:
        path = path.resolve() if ".." in path.parts else path.absolute()
        mode = path.stat().st_mode
    except PermissionError as cause:
        raise unreadable(path, cause) from cause
    except (OSError, ValueError) as cause:
        if "\N{REPLACEMENT CHARACTER}" in folder:
            # What the window's own library made of a name that it could not read.
            raise _not_a_model(path, _NOT_UNICODE) from cause
        raise LarderError(ErrorCode.FOLDER_NOT_FOUND, folder=shown(folder)) from cause
    if not is_unicode(str(path)):
        raise _not_a_model(path, _NOT_UNICODE)
    if not stat.S_ISDIR(mode):
        raise _not_a_model(path, _about_file(path))
    names = list_names(path)
    if CONFIG_NAME in names:
        return Place(path, names, model_name(path))
    found = _below(path, names)
    if len(found) == 1:
        return Place(found[0], list_names(found[0]), model_name(found[0]))
    if found:
        # What to do goes first, because a long text loses its end.
        listed = ", ".join(model_name(item) for item in found[:3])
        raise _not_a_model(path, f"it holds {len(found)} models, choose one of them: {listed}")
    raise _not_a_model(path, _about_folder(names))


def list_names(folder: Path) -> list[str]:
    """Return the entries of a folder, sorted; at most ``MAX_ENTRIES``."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, MAX_ENTRIES))
    except OSError as cause:
        raise unreadable(folder, cause) from cause


def model_name(folder: Path) -> str:
    """Return what to call the model of a folder; one in a hub cache goes by the hub's name."""
    for part in reversed(folder.parts[-3:]):
        if part.startswith(_HUB_PREFIX):
            return shown(part.rpartition("--")[2])
    return shown(folder.name or str(folder))


def _below(path: Path, names: list[str]) -> list[Path]:
    """Return the folders that can be meant: the current snapshot, or children with a config."""
    if "snapshots" in names:
        return _snapshot(path)
    found: list[Path] = []
    for child in (path / name for name in names[:MAX_CHILDREN]):
        if child.name.startswith(_HUB_PREFIX):
            found += _snapshot(child)
        elif is_file(child / CONFIG_NAME):
            found.append(child)
    return found


def _snapshot(repository: Path) -> list[Path]:
    """Return the snapshot that ``main`` names, else the newest one with a config, else nothing."""
    try:
        main = read_start(repository / "refs" / "main", 80).decode("ascii", "replace").strip()
    except (FileNotFoundError, LarderError):
        main = ""
    try:
        names = list_names(repository / "snapshots")[:MAX_CHILDREN]
    except LarderError:
        return []
    usable = [repository / "snapshots" / name for name in names]
    usable = [item for item in usable if is_file(item / CONFIG_NAME)]
    named = [item for item in usable if item.name == main]
    return named or sorted(usable, key=_modified_s)[-1:]


def _modified_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _about_file(path: Path) -> str:
    try:
        start = read_start(path, 4)
    except (FileNotFoundError, LarderError):
        return "it is not a folder"
    if start == GGUF_MAGIC:
        return "it is a GGUF file, which cannot be read yet; the safetensors version is needed"
    if is_file(path.parent / CONFIG_NAME):
        return f"it is one file of a model; choose its folder {shown(str(path.parent))}"
    if path.suffix == ".safetensors":
        return "it is one file of a model; its config.json and tokenizer.json are needed too"
    return "it is a file and not a folder"


def _about_folder(names: list[str]) -> str:
    endings = {name.rpartition(".")[2].lower() for name in names}
    if "gguf" in endings:
        return "it holds GGUF files, which cannot be read yet; the safetensors version is needed"
    if "adapter_config.json" in names:
        return "it holds an adapter, which is nothing without its base model"
    if "safetensors" in endings:
        return "config.json is missing beside the weights"
    return "it has no config.json" if names else "it is empty"


def _not_a_model(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.NOT_A_MODEL, folder=shown(str(path)), reason=reason)
