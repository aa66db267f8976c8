"""Where in what was dropped the model really lies."""

import dataclasses
import errno
import os
import stat
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect import hub_cache
from runtime.inspect.files import CIRCLE, is_file, is_unicode, shown, unreadable
from runtime.inspect.gguf.parts import is_gguf_name
from runtime.inspect.gguf.parts import model_name as gguf_model_name
from runtime.inspect.gguf.places import gguf_below, gguf_models, is_gguf, names_in
from runtime.inspect.listing import CONFIG_NAME, MAX_CHILDREN, has_weights, list_names
from runtime.inspect.manifest import JOURNAL_NAME
from runtime.protocol.errors import ErrorCode

_MODEL_ENDINGS = (".safetensors", ".json")
_NOT_UNICODE = "its path holds signs that are not Unicode text, so rename it first"
_MAX_LISTED = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A folder that can be a model, its entries, and the name it goes by."""

    folder: Path
    names: list[str]
    name: str
    gguf: Path | None = None
    """The first file of the model, if it is in GGUF."""


def find_model(folder: str) -> Place:
    """Return the folder with ``config.json``: the one given, one level below, or in a hub cache.

    One of the model's own files stands for its folder, an inner folder of a hub cache for the model
    that is cached. Raises ``LarderError`` with ``FOLDER_NOT_FOUND``, ``FILE_UNREADABLE``,
    ``SEVERAL_MODELS`` or ``NOT_A_MODEL``.
    """
    path, mode = _look(folder)
    if not stat.S_ISDIR(mode):
        if is_gguf(path):
            return _gguf_place(path)
        path = _folder_of(path)
    names = list_names(path)
    if CONFIG_NAME in names and (has_weights(names) or not any(map(is_gguf_name, names))):
        return Place(path, names, model_name(path))
    own = gguf_models(path, names)
    if not own:
        path = hub_cache.repository_of(path)
        names = list_names(path)
    found = own or _below(path, names)
    if len(found) == 1:
        return _place(found[0])
    if found:
        listed = ", ".join(_called(item) for item in found[:_MAX_LISTED])
        more = f" and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
        raise LarderError(
            ErrorCode.SEVERAL_MODELS,
            folder=shown(str(path)),
            num_models=len(found),
            names=listed + more,
        )
    raise _not_a_model(path, _about_folder(names))


def _place(found: Path) -> Place:
    """Return the place of a folder or file that holds a model."""
    if is_gguf_name(found.name) and not found.is_dir():
        return _gguf_place(found)
    return Place(found, list_names(found), model_name(found))


def _gguf_place(path: Path) -> Place:
    return Place(path.parent, [], _called(path), path)


def _called(found: Path) -> str:
    """Return what to call the model of a folder or file."""
    return gguf_model_name(found.name) if is_gguf_name(found.name) else model_name(found)


def model_name(folder: Path) -> str:
    """Return what to call the model of a folder; one in a hub cache goes by the hub's name."""
    for part in reversed(folder.parts[-3:]):
        if part.startswith(hub_cache.PREFIX):
            return shown(part.rpartition("--")[2])
    return shown(folder.name or str(folder))


def real_place(folder: str) -> str:
    """Return where links, or junctions, on the way to a folder or file lead; nothing without any.

    Nothing too for what is not there.
    """
    try:
        real = os.path.realpath(folder, strict=True)
    except (OSError, ValueError):
        return ""
    is_itself = os.path.normcase(real) == os.path.normcase(os.path.abspath(folder))  # noqa: PTH100 - keeps links
    return "" if is_itself else shown(real)


def _look(folder: str) -> tuple[Path, int]:
    """Return the absolute path of what was dropped, and its mode."""
    if not folder:
        raise LarderError(ErrorCode.FOLDER_NOT_FOUND, folder=folder)
    path = Path(folder)
    try:
        path = path.resolve() if ".." in path.parts else path.absolute()
        mode = path.stat().st_mode
    except PermissionError as cause:
        raise unreadable(path, cause) from cause
    except (OSError, ValueError, RuntimeError) as cause:
        if "\N{REPLACEMENT CHARACTER}" in folder:
            # What the window's own library made of a name that it could not read.
            raise _not_a_model(path, _NOT_UNICODE) from cause
        if isinstance(cause, OSError) and cause.errno == errno.ELOOP:
            raise _not_a_model(path, CIRCLE) from cause
        if isinstance(cause, FileNotFoundError) and path.is_symlink():
            raise _not_a_model(path, "it is a link to something that is not there") from cause
        raise LarderError(ErrorCode.FOLDER_NOT_FOUND, folder=shown(folder)) from cause
    if not is_unicode(str(path)):
        raise _not_a_model(path, _NOT_UNICODE)
    return path, mode


def _folder_of(path: Path) -> Path:
    """Return the model folder that a dropped file stands for, or raise what it is instead."""
    if is_file(path):
        repository = hub_cache.repository_of(path)
        if repository != path:
            return repository
        if path.suffix in _MODEL_ENDINGS and is_file(path.parent / CONFIG_NAME):
            return path.parent
    raise _not_a_model(path, _about_file(path))


def _below(path: Path, names: list[str]) -> list[Path]:
    """Return the folders that can be meant: the current snapshot, or children with a config."""
    if "snapshots" in names:
        return _models_of(hub_cache.find_snapshot(path))
    found: list[Path] = []
    for child in (path / name for name in names[:MAX_CHILDREN]):
        if child.name.startswith(hub_cache.PREFIX):
            found += _models_of(hub_cache.find_snapshot(child))
        elif is_file(child / CONFIG_NAME):
            found.append(child)
        elif child.name == hub_cache.HUB_NAME:
            found += _models_of(hub_cache.find_cached(child))
        elif child.is_dir():
            found += gguf_models(child, names_in(child))
    return found


def _models_of(folders: list[Path]) -> list[Path]:
    """Return the models in snapshots: each itself, or what it holds in GGUF instead."""
    found: list[Path] = []
    for folder in folders:
        names = names_in(folder)
        is_whole = CONFIG_NAME in names and has_weights(names)
        own = [] if is_whole else gguf_below(folder)
        found += own or [folder]
    return found


def _about_file(path: Path) -> str:
    if not is_file(path):
        return "it is neither a folder nor a file"
    if is_file(path.parent / CONFIG_NAME):
        return f"it is one file of the model in {shown(str(path.parent))}"
    if path.suffix == ".safetensors":
        return "it is one file of a model; its config.json and tokenizer.json are needed too"
    return "it is a file and not a folder"


def _about_folder(names: list[str]) -> str:
    endings = {name.rpartition(".")[2].lower() for name in names}
    if "gguf" in endings:
        return "the GGUF files in it are no models of their own but go beside one"
    if "adapter_config.json" in names:
        return "it holds an adapter, which is nothing without its base model"
    if JOURNAL_NAME in names:
        return "it holds a prepared copy that is not finished"
    if "safetensors" in endings:
        return "config.json is missing beside the weights"
    if "snapshots" in names:
        return "no snapshot in it holds config.json, so its download is not complete"
    return "it has no config.json" if names else "it is empty"


def _not_a_model(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.NOT_A_MODEL, folder=shown(str(path)), reason=reason)
