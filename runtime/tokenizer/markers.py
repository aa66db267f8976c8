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
        self._firsts = tuple({marker[0] for marker in markers})
        self._held = ""

    def feed(self, piece: str) -> Iterator[str | Marker]:
        """Take the next piece; yield what became certain, in order."""
        if not self._held and not any(first in piece for first in self._firsts):
            if piece:
                yield piece
            return
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
        """Return the length of the end of ``text`` that begins a marker."""
        start = max(text.rfind(first) for first in self._firsts)
        if start < 0:
            return 0
        end = text[start:]
        return len(end) if any(marker.startswith(end) for marker in self._markers) else 0
