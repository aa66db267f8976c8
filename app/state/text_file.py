"""Text files that go with a question: read, bounded, told apart from what is no text."""

import dataclasses
import enum
import re
from pathlib import Path

MAX_FILE_BYTES = 4 << 20
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_TICKS = re.compile(r"`{3,}")


class TextFileProblem(enum.Enum):
    """Why a file was not taken."""

    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    NOT_TEXT = "not_text"
    EMPTY = "empty"


class TextFileError(Exception):
    """A file that cannot go with a question; ``reason`` is the system's, if it has one."""

    def __init__(self, problem: TextFileProblem, reason: str = "") -> None:
        super().__init__(problem.value, reason)
        self.problem = problem
        self.reason = reason


@dataclasses.dataclass(frozen=True, slots=True)
class TextFile:
    """A file's name without its folder, and its text with plain line ends."""

    name: str
    text: str


def read_text_file(path: Path) -> TextFile:
    """Return a file's text, in UTF-8, UTF-16 with its mark, or Windows' western letters.

    Raises ``TextFileError``. Folders, pipes and devices are no text.
    """
    try:
        if path.exists() and not path.is_file():
            raise TextFileError(TextFileProblem.NOT_TEXT)
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TextFileError(TextFileProblem.UNREADABLE, reason) from error
    if len(content) > MAX_FILE_BYTES:
        raise TextFileError(TextFileProblem.TOO_LARGE)
    text = "\n".join(_decoded(content).splitlines()).strip("\n")
    if not text.strip():
        raise TextFileError(TextFileProblem.EMPTY)
    if _CONTROLS.search(text):
        raise TextFileError(TextFileProblem.NOT_TEXT)
    return TextFile(path.name, text)


def as_part_of_question(file: TextFile) -> str:
    """Return a file as it stands in a question: its name, then its text in a fence of its own."""
    ticks = "`" * max((len(run) + 1 for run in _TICKS.findall(file.text)), default=3)
    language = Path(file.name).suffix.removeprefix(".")
    return f"{file.name}:\n\n{ticks}{language if language.isalnum() else ''}\n{file.text}\n{ticks}"


def _decoded(content: bytes) -> str:
    encodings = ["utf-8-sig", "cp1252"]
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings.insert(0, "utf-16")
    for encoding in encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise TextFileError(TextFileProblem.NOT_TEXT)
