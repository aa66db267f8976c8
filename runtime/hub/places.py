"""Where downloads lie, finished and not, and the record that belongs to each."""

import contextlib
import shutil
from pathlib import Path

import msgspec

from runtime.errors import LarderError
from runtime.hub.repo import RepoFile, check_model_id, is_plain_name
from runtime.prepare.disk import PART_ENDING, replacing
from runtime.prepare.lock import FolderLock
from runtime.protocol.errors import ErrorCode

RECORD_NAME = "larder-download.json"
_MAX_RECORD_BYTES = 32_000_000


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a download consists of; it lies among the files, also when they are complete."""

    model_id: str
    revision: str
    files: list[RepoFile]


def checked_root(folder: str) -> Path:
    """Return the place of downloads; raises ``LarderError`` for one that is not whole."""
    root = Path(folder)
    if not folder or not root.is_absolute():
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name="download folder",
            found=folder or "empty",
            expected="a whole path",
        )
    return root


def final_folder(root: Path, model_id: str, variant: str = "") -> Path:
    """Return where a model, or one of those in GGUF of a page, lies once it is complete.

    Raises ``LarderError`` for names that lead elsewhere.
    """
    check_model_id(model_id)
    if variant and not is_plain_name(variant):
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name="variant",
            found=variant[:120],
            expected="a name like Q4_K_M",
        )
    final = root.joinpath(*model_id.split("/"))
    # No model's own name has that sign in it.
    return final.with_name(f"{final.name}@{variant}") if variant else final


def part_folder(root: Path, model_id: str, variant: str = "") -> Path:
    """Return where its files gather; hidden, so that no search takes it for a model."""
    final = final_folder(root, model_id, variant)
    return final.with_name(f".{final.name}.download")


def read_record(folder: Path) -> Record | None:
    """Return the record in a folder; None without one that can be read."""
    path = folder / RECORD_NAME
    try:
        if path.stat().st_size > _MAX_RECORD_BYTES:
            return None
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def write_record(folder: Path, record: Record) -> None:
    """Write the record whole or not at all; raises ``OSError``."""
    with replacing(folder / RECORD_NAME) as file:
        file.write(msgspec.json.format(msgspec.json.encode(record), indent=1))


def is_complete(folder: Path, record: Record) -> bool:
    """Whether every file of a record is there with its size."""
    return all(_size_of(folder / file.name) == file.size_bytes for file in record.files)


def kept_bytes(folder: Path, files: list[RepoFile]) -> int:
    """Return how much of some files is there, finished or not."""
    total = 0
    for file in files:
        whole = _size_of(folder / file.name)
        part = _size_of(folder / (file.name + PART_ENDING))
        total += min(max(whole, part, 0), file.size_bytes)
    return total


def discard(root: Path, model_id: str, variant: str = "") -> int:
    """Delete what an unfinished download left; return how many bytes that were.

    Raises ``FolderBusyError`` while it goes on, or ``OSError``. Only a folder of our own making is
    deleted.
    """
    folder = part_folder(root, model_id, variant)
    if not folder.is_dir():
        return 0
    with FolderLock(folder):
        pass
    freed = sum(_size_of(path) for path in folder.iterdir() if path.is_file())
    shutil.rmtree(folder)
    with contextlib.suppress(OSError):
        # The owner's folder, if nothing else lies in it.
        if folder.parent != root:
            folder.parent.rmdir()
    return freed


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
