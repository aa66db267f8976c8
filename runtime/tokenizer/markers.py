"""Finds markers in a text that arrives in pieces."""

import re
from collections.abc import Iterator, Sequence


class Marker(str):
    """A marker as it stands in the text, told apart from words by its type."""

    __slots__ = ()


class MarkerScanner:
    """Cuts a growing text into words and markers; what may be the beginning of one is held back.

    No marker may hold the first character of another behind its own first one, so that two never
    overlap and how the text is cut into pieces makes no difference.
    """

    def __init__(self, markers: Sequence[str]) -> None:
        self._markers = tuple(markers)
        self._pattern = re.compile("|".join(map(re.escape, markers)))
        self._longest = max(map(len, markers))
        self._held = ""

    def feed(self, piece: str) -> Iterator[str | Marker]:
        """Take the next piece; yield what became certain, in order."""
        text = self._held + piece
        position = 0
        for match in self._pattern.finditer(text):
            if match.start() > position:
                yield text[position : match.start()]
            yield Marker(match.group())
            position = match.end()
        certain = len(text) - self._num_held(text[position:])
        self._held = text[certain:]
        if certain > position:
            yield text[position:certain]

    def finish(self) -> str:
        """Return what was held back: it never became a marker."""
        held, self._held = self._held, ""
        return held

    def _num_held(self, text: str) -> int:
        """Return the length of the longest end of ``text`` that begins a marker."""
        for length in range(min(len(text), self._longest - 1), 0, -1):
            if any(marker.startswith(text[-length:]) for marker in self._markers):
                return length
        return 0
