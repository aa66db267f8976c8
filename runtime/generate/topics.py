"""Notices when an answer suddenly needs other experts than it did before."""

from collections.abc import Callable

from runtime.telemetry.recorder import Counters

WINDOW_TOKENS = 16
"""Generated tokens over which exchanged experts are counted."""
_NUM_USUAL_WINDOWS = 3
"""Windows without which nobody knows what is usual."""
_TIMES_USUAL = 3.0
_MIN_EXCHANGED = 32
_NEW_SHARE = 0.25
"""Weight of the newest window in what is usual."""


class TopicWatch:
    """Compares the experts that were read in a window of tokens with what is usual.

    Tells at most once in an answer. After a change of budgets what is usual is learned anew.

    Threads: used by the engine thread.
    """

    def __init__(self, counters: Counters, tell: Callable[[int], None]) -> None:
        self._counters = counters
        self._tell = tell
        self._usual = 0.0
        self._num_windows = 0
        self._is_told = False
        self._num_tokens = counters.num_decoded_tokens
        self._num_misses = counters.expert_misses

    def begin_answer(self) -> None:
        """Start a window: what a prompt reads is not compared."""
        self._is_told = False
        self._restart()

    def forget(self) -> None:
        """Learn anew what is usual."""
        self._usual = 0.0
        self._num_windows = 0
        self._restart()

    def look(self) -> None:
        """Compare if a window is full; called between two steps."""
        counters = self._counters
        if counters.num_decoded_tokens == self._num_tokens:
            # Nothing was generated yet, so what was read belongs to the prompt.
            self._num_misses = counters.expert_misses
            return
        if counters.num_decoded_tokens - self._num_tokens < WINDOW_TOKENS:
            return
        exchanged = counters.expert_misses - self._num_misses
        is_known = self._num_windows >= _NUM_USUAL_WINDOWS
        is_much = exchanged >= max(_MIN_EXCHANGED, _TIMES_USUAL * self._usual)
        if is_known and is_much and not self._is_told:
            self._is_told = True
            self._tell(exchanged)
        share = max(_NEW_SHARE, 1 / (self._num_windows + 1))
        self._usual += share * (exchanged - self._usual)
        self._num_windows += 1
        self._restart()

    def _restart(self) -> None:
        self._num_tokens = self._counters.num_decoded_tokens
        self._num_misses = self._counters.expert_misses
