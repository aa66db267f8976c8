"""Thinking that a model announces in words, as Granite 3.2 does."""

from runtime.tokenizer.markers import Marker, MarkerScanner
from runtime.tokenizer.separation import Parted, Trimmer, joined

THOUGHT, RESPONSE = "Here is my thought process:", "Here is my response:"
"""What a template tells its model to write."""
_THOUGHTS = (THOUGHT, "Here's my thought process:")
_RESPONSES = (RESPONSE, "Here's my response:")
ANNOUNCEMENTS = (*_THOUGHTS, *_RESPONSES)
"""All that is understood: models shorten the words now and then."""


class SpokenSeparator:
    """Parts thinking and answer by the words in front of them.

        [space] Here is my thought process: thinking Here is my response: answer

    The words count where an answer begins, and behind the thinking once; elsewhere they are words
    like others.
    """

    def __init__(self) -> None:
        self._scanner = MarkerScanner(ANNOUNCEMENTS)
        self._is_thinking = False
        self._thinking = Trimmer()
        self._has_begun = False
        """Whether the answer has words, or nothing else can come before them any more."""
        self._space: str | None = ""
        """White space at the beginning; None behind an announcement, where it is nobody's."""

    @property
    def is_thinking(self) -> bool:
        """Whether the text that comes next is thinking."""
        return self._is_thinking

    def feed(self, piece: str) -> Parted:
        """Take the next piece and return what became certain."""
        return joined(
            [
                self._take_announcement(part) if isinstance(part, Marker) else self._take(part)
                for part in self._scanner.feed(piece)
            ]
        )

    def finish(self) -> Parted:
        """Return what was held back; no more text comes."""
        parted = self._take(self._scanner.finish())
        space, self._space = self._space, None
        return parted + Parted(answer=space or "")

    def _take(self, text: str) -> Parted:
        if self._is_thinking:
            return Parted(thinking=self._thinking.feed(text))
        if self._has_begun:
            return Parted(answer=text)
        core = text.lstrip()
        if self._space is not None:
            self._space += text[: len(text) - len(core)]
        if not core:
            return Parted()
        self._has_begun = True
        space, self._space = self._space, None
        return Parted(answer=(space or "") + core)

    def _take_announcement(self, marker: str) -> Parted:
        if self._is_thinking and marker in _RESPONSES:
            self._is_thinking = False
            return Parted()
        is_first = not (self._is_thinking or self._has_begun) and self._space is not None
        if not is_first:
            return self._take(marker)
        self._space = None
        self._is_thinking = marker in _THOUGHTS
        return Parted()
