"""Reads the chats of a file one after the other, of files of any length."""

import contextlib
import dataclasses
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

from app.state.chat_archive import ArchiveRefusedError, ChatArchive, Member, is_archive
from app.state.chat_import import ChatImportError, ImportedChat, chat_of
from app.state.chat_stream import MAX_CHAT_BYTES, Candidate, ChatCutter, NotJsonError

_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)


@dataclasses.dataclass(frozen=True, slots=True)
class ImportEnd:
    """How the import of a file ended."""

    num_kept: int
    num_too_large: int = 0
    """Chats that were left out."""
    error: str = ""
    """Why the rest of the file was not read, in technical words; empty if all was."""
    is_stopped: bool = False
    """By the person, or by the end of the program."""


class Reading(Protocol):
    """Chats that come one after the other."""

    num_too_large: int
    """Chats that were left out."""

    @property
    def ratio(self) -> float:
        """How much was read, from 0 to 1."""

    def __iter__(self) -> Iterator[ImportedChat | None]:
        """Yield the chats, and None where another slice of time may be waited for.

        Raises ``ChatImportError`` or ``OSError``.
        """

    def close(self) -> None:
        """Close the file."""


class HeldChats:
    """Chats that were read before."""

    def __init__(self, chats: Iterable[ImportedChat]) -> None:
        self._chats = list(chats)
        self.num_too_large = 0
        self.ratio = 0.0

    def __iter__(self) -> Iterator[ImportedChat]:
        """Yield them."""
        return iter(self._chats)

    def close(self) -> None:
        """Do nothing."""


class ChatReading:
    """The chats of one file, in its order. Threads: one."""

    def __init__(self, files: "_Files") -> None:
        self._files = files
        self._num_read = 0
        self.num_too_large = 0

    @property
    def ratio(self) -> float:
        """How much was read, from 0 to 1."""
        return min(self._num_read / max(self._files.num_bytes, 1), 1.0)

    def close(self) -> None:
        """Close the file."""
        self._files.close()

    def __iter__(self) -> Iterator[ImportedChat | None]:
        """Yield the chats; raise ``ChatImportError`` for what is none, or breaks off."""
        num_found, outline = 0, ""
        for file in self._files:
            with file:
                cutter = ChatCutter(_Counted(self, file))
                try:
                    for candidate in self._candidates(cutter):
                        chat = chat_of(candidate) if candidate is not None else None
                        num_found += chat is not None
                        yield chat
                finally:
                    self.num_too_large += cutter.num_too_large
            outline = outline or cutter.outline
        if not num_found and not self.num_too_large:
            raise ChatImportError(f"JSON without messages: {outline}")

    def _candidates(self, cutter: ChatCutter) -> Iterator[Candidate | None]:
        """Yield what may be chats; messages that lie there without one are one."""
        bare: list[Candidate] = []
        try:
            for each in cutter:
                if each is None or not _is_message(each):
                    yield each
                    continue
                bare.append(each)
                if cutter.num_bytes > MAX_CHAT_BYTES:
                    raise ChatImportError("messages of one chat that are too many to hold")
        except (NotJsonError, *_DAMAGED) as error:
            raise ChatImportError(f"not JSON: {error}") from error
        if bare:
            yield {"messages": bare}

    def count(self, num_bytes: int) -> None:
        """Note that so much more was read."""
        self._num_read += num_bytes


class _Files(Protocol):
    """The files in which chats are."""

    num_bytes: int

    def __iter__(self) -> Iterator[BinaryIO]: ...
    def close(self) -> None: ...


class _OneFile:
    def __init__(self, file: BinaryIO, num_bytes: int) -> None:
        self._file = file
        self.num_bytes = num_bytes

    def __iter__(self) -> Iterator[BinaryIO]:
        yield self._file

    def close(self) -> None:
        self._file.close()


class _Archived:
    def __init__(self, archive: ChatArchive) -> None:
        self._archive = archive
        self.num_bytes = sum(member.num_bytes for member in archive.members)

    def __iter__(self) -> Iterator[BinaryIO]:
        for member in self._archive.members:
            yield self._open(member)

    def _open(self, member: Member) -> BinaryIO:
        try:
            return self._archive.open(member)
        except ArchiveRefusedError as error:
            raise ChatImportError(str(error)) from error

    def close(self) -> None:
        self._archive.close()


class _Counted:
    """A file that tells how much was read of it."""

    def __init__(self, reading: ChatReading, file: BinaryIO) -> None:
        self._reading = reading
        self._file = file

    def read(self, num_bytes: int) -> bytes:
        data = self._file.read(num_bytes)
        self._reading.count(len(data))
        return data


def open_chats(path: Path) -> ChatReading:
    """Begin to read a file or archive with chats; raise ``ChatImportError`` or ``OSError``."""
    if not is_archive(path):
        return ChatReading(_OneFile(path.open("rb"), path.stat().st_size))
    try:
        return ChatReading(_Archived(ChatArchive(path)))
    except ArchiveRefusedError as error:
        raise ChatImportError(str(error)) from error


def chats_of(content: bytes) -> list[ImportedChat]:
    """Return all chats of what a file holds; raise ``ChatImportError`` if there are none."""
    with contextlib.closing(ChatReading(_OneFile(io.BytesIO(content), len(content)))) as reading:
        return [chat for chat in reading if chat is not None]


def _is_message(candidate: Mapping[str, object]) -> bool:
    return "role" in candidate or "from" in candidate
