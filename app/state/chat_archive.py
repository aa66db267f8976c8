"""The files with chats in an archive that another program made, without unpacking it."""

import re
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

MAX_FILES = 20_000
MAX_RATIO = 200
"""Text shrinks to a tenth or a twentieth; what claims more was made to fill a drive."""
MAX_UNPACKED_BYTES = 16 << 30
_END_MARK, _END_BYTES = b"PK\x05\x06", 22
_MAX_COMMENT_BYTES = 1 << 16
_CHATS = re.compile(r"conversations([-_]\d+)?\.json", re.IGNORECASE)
_ENDINGS = (".json", ".jsonl")


class ArchiveRefusedError(Exception):
    """The archive cannot be read; the text says why, in technical words."""


class Member(NamedTuple):
    """One file of an archive: its name there, and how long it is unpacked."""

    name: str
    num_bytes: int


class ChatArchive:
    """An archive of which single files are read. Threads: one."""

    def __init__(self, path: Path) -> None:
        _check_directory(path)
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError) as error:
            raise ArchiveRefusedError(f"no archive that can be read: {error}") from error
        try:
            self.members = self._find()
        except ArchiveRefusedError:
            self._archive.close()
            raise

    def open(self, member: Member) -> BinaryIO:
        """Return one of the files, to be read from its beginning to its end."""
        try:
            return cast("BinaryIO", self._archive.open(member.name))
        except (zipfile.BadZipFile, RuntimeError) as error:
            # A password, and ways of packing that are not known, are told as the latter.
            raise ArchiveRefusedError(str(error)) from error

    def close(self) -> None:
        """Close the archive."""
        self._archive.close()

    def _find(self) -> list[Member]:
        """Return the files that chats are in: those that are named so, else all of JSON."""
        infos = [info for info in self._archive.infolist() if not info.is_dir()]
        named = [info for info in infos if _CHATS.fullmatch(info.filename.rpartition("/")[2])]
        chosen = named or [info for info in infos if _may_hold_chats(info.filename)]
        if not chosen:
            raise ArchiveRefusedError("an archive without a file of JSON")
        for info in chosen:
            if info.file_size > MAX_RATIO * max(info.compress_size, 1):
                raise ArchiveRefusedError(
                    f"{info.filename[:80]} would be {info.file_size} bytes, packed into"
                    f" {info.compress_size}"
                )
        if sum(info.file_size for info in chosen) > MAX_UNPACKED_BYTES:
            raise ArchiveRefusedError(f"more than {MAX_UNPACKED_BYTES >> 30} GiB of chats")
        return [Member(info.filename, info.file_size) for info in chosen]


def _may_hold_chats(name: str) -> bool:
    """Whether a file is of JSON, and not what a Mac notes of one beside it."""
    return name.lower().endswith(_ENDINGS) and not name.rpartition("/")[2].startswith("._")


def is_archive(path: Path) -> bool:
    """Whether a file begins as archives do; raises ``OSError``."""
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", _END_MARK)


def _check_directory(path: Path) -> None:
    """Refuse an archive that names more files than can be held, before they are read."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(file.tell() - _END_BYTES - _MAX_COMMENT_BYTES, 0))
        end = file.read()
    at = end.rfind(_END_MARK)
    if at < 0 or len(end) < at + _END_BYTES:
        raise ArchiveRefusedError("an archive without an end, as if its download had stopped")
    num_files = int.from_bytes(end[at + 10 : at + 12], "little")
    if num_files > MAX_FILES:
        raise ArchiveRefusedError(f"an archive of {num_files} files or more")
