"""Notices when a card has become several times slower than it was, as when its memory spills over.

Windows moves memory of a full card to RAM, where the card reaches it over the link; nothing fails.
"""

WINDOW_STEPS = 8
"""Steps whose times are put together, so that a hiccup is no collapse."""
_NUM_USUAL_WINDOWS = 4
"""Windows without which nobody knows what is usual."""
_TIMES_USUAL = 3.0
_NUM_SLOW_WINDOWS = 2
"""So many slow windows one after the other are a collapse."""


class SpillWatch:
    """Compares what steps take on a card with what they took before."""

    def __init__(self) -> None:
        self._window_s = 0.0
        self._num_steps = 0
        self._usual_s: list[float] = []
        self._num_slow = 0

    def restart(self) -> None:
        """Learn anew what is usual."""
        self._window_s, self._num_steps = 0.0, 0
        self._usual_s.clear()
        self._num_slow = 0

    def note(self, step_s: float) -> bool:
        """Note what a generated token took on the card; return whether its rate has collapsed.

        What is usual is the least of the first windows: a card that was slow from the beginning is
        not noticed.
        """
        self._window_s += step_s
        self._num_steps += 1
        if self._num_steps < WINDOW_STEPS:
            return False
        window_s, self._window_s, self._num_steps = self._window_s, 0.0, 0
        if len(self._usual_s) < _NUM_USUAL_WINDOWS:
            self._usual_s.append(window_s)
            return False
        is_slow = window_s > _TIMES_USUAL * min(self._usual_s)
        self._num_slow = self._num_slow + 1 if is_slow else 0
        return self._num_slow >= _NUM_SLOW_WINDOWS
