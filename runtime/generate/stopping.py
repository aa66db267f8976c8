"""Stop strings in a stream of text that arrives in pieces."""

from collections.abc import Sequence


class StopFilter:
    """Passes text on, holds back what may be the beginning of a stop string, ends at a whole one.

    The stop string that is complete first ends the text; of two that are complete at the same
    place, the longer. It and all after it are dropped. How the text is cut into pieces makes no
    difference.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = sorted({text for text in stop if text}, key=len, reverse=True)
        self._held = ""
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        """Whether a stop string appeared."""
        return self._is_stopped

    def feed(self, piece: str) -> str:
        """Take the next piece of text and return what became certain."""
        if self._is_stopped:
            return ""
        if not self._stop:
            return piece
        text = self._held + piece
        found = self._first_stop(text)
        if found is not None:
            self._is_stopped = True
            self._held = ""
            return text[:found]
        certain = len(text) - self._num_held(text)
        self._held = text[certain:]
        return text[:certain]

    def finish(self) -> str:
        """Return what was held back; the text ends here without a stop string."""
        held, self._held = self._held, ""
        return held

    def _first_stop(self, text: str) -> int | None:
        """Return where the stop string that is complete first begins, or None."""
        ends = [
            (start + len(stop), start) for stop in self._stop if (start := text.find(stop)) >= 0
        ]
        return min(ends)[1] if ends else None

    def _num_held(self, text: str) -> int:
        """Return the length of the longest end of ``text`` that begins a stop string."""
        longest = min(len(text), len(self._stop[0]) - 1)
        for length in range(longest, 0, -1):
            end = text[-length:]
            if any(stop.startswith(end) for stop in self._stop):
                return length
        return 0
