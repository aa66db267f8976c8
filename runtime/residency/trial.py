"""Whether guessing what comes next lets tokens come sooner: tried, not believed. Pure."""

import enum
import statistics

WINDOW_STEPS = 8
"""Steps between two changes of sides."""
NUM_WINDOWS = 3
"""Windows of each side before it is decided."""
KEPT_STEPS = 1024
"""Steps for which a decision stands; conditions change, so then it is tried again."""
_WORTH_RATIO = 0.98
"""Steps with guesses must take less than this part of the others' time."""


class HintMode(enum.Enum):
    """Whether guesses are listened to."""

    NEVER = enum.auto()
    MEASURED = enum.auto()
    """Where they are found to help."""
    ALWAYS = enum.auto()


class HintTrial:
    """Windows without and with guesses take turns; then what took less time stands for a while."""

    def __init__(self, mode: HintMode) -> None:
        self._mode = mode
        self.restart()

    @property
    def is_on(self) -> bool:
        """Whether guesses are listened to in the step that comes."""
        return self._is_on if self._mode is HintMode.MEASURED else self._mode is HintMode.ALWAYS

    def restart(self) -> None:
        """Forget what is known, as after a change of what lies in RAM."""
        self._is_on = False
        self._windows: dict[bool, list[float]] = {False: [], True: []}
        self._steps: list[float] = []
        self._num_kept = 0

    def note(self, seconds: float) -> None:
        """Take the time of a step that generated one token."""
        if self._mode is not HintMode.MEASURED:
            return
        if self._num_kept:
            self._num_kept -= 1
            if not self._num_kept:
                self.restart()
            return
        self._steps.append(seconds)
        if len(self._steps) < WINDOW_STEPS:
            return
        # The median, so that a step that was held up by something else does not count.
        self._windows[self._is_on].append(statistics.median(self._steps))
        self._steps = []
        self._is_on = not self._is_on
        if len(self._windows[True]) == NUM_WINDOWS:
            without, with_hints = (statistics.median(self._windows[x]) for x in (False, True))
            self._is_on = with_hints < _WORTH_RATIO * without
            self._num_kept = KEPT_STEPS
