"""Parts what a model generates into its thinking and its answer, while the text arrives."""

import dataclasses
from typing import Protocol


@dataclasses.dataclass(frozen=True, slots=True)
class Parted:
    """Text that became certain, without markers."""

    thinking: str = ""
    answer: str = ""

    def __add__(self, other: "Parted") -> "Parted":
        return Parted(self.thinking + other.thinking, self.answer + other.answer)


def joined(parts: list[Parted]) -> Parted:
    """Return all parts as one."""
    return parts[0] if len(parts) == 1 else sum(parts, Parted())


class Separator(Protocol):
    """Takes the text of one answer in pieces; however it is cut, the parts are the same.

    ``finish`` returns the rest: thinking that was not closed stays thinking. Threads: one thread
    at a time.
    """

    @property
    def is_thinking(self) -> bool:
        """Whether the text that comes next is thinking."""

    def feed(self, piece: str) -> Parted:
        """Take the next piece and return what became certain."""

    def finish(self) -> Parted:
        """Return what was held back; no more text comes."""


class Trimmer:
    """Drops white space around a text that arrives in pieces.

    ``next`` begins another text, which is set off from the one before by an empty line.
    """

    def __init__(self, gap: str = "") -> None:
        self._gap = gap
        self._held = ""
        self.is_empty = True
        """Whether nothing but white space came so far."""

    def feed(self, piece: str) -> str:
        """Return the text up to its last character that is not white space."""
        text = piece.lstrip() if self.is_empty else self._held + piece
        core = text.rstrip()
        self._held = text[len(core) :]
        if not core:
            return ""
        self.is_empty = False
        gap, self._gap = self._gap, ""
        return gap + core

    def next(self) -> "Trimmer":
        """Return the trimmer of the text after this one."""
        return Trimmer(self._gap if self.is_empty else "\n\n")
