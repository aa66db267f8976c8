"""Policies that look at when experts were used: the time before last, or uses by age."""

from runtime.policy.ranked import RankedPolicy

_NEVER = 0
_STEP_LIMIT = 1 << 26


class Lru2Policy(RankedPolicy):
    """Lets the expert leave whose use before the last is the oldest.

    Those used once leave before all others, the longest unused first.
    """

    def __init__(self, num_slots: int) -> None:
        super().__init__(num_slots)
        self._last: dict[int, int] = {}
        self._before_last: dict[int, int] = {}

    def worth(self, expert: int, now: int) -> float:
        """Return the order of leaving: time of the use before last, then of the last."""
        before = self._before_last.get(expert, _NEVER)
        return float(before * _STEP_LIMIT + self._last.get(expert, _NEVER))

    def _use(self, experts: list[int]) -> None:
        for expert in experts:
            if expert in self._last:
                self._before_last[expert] = self._last[expert]
            self._last[expert] = self._step


class LfruPolicy(RankedPolicy):
    """Ranks by the number of uses divided by the age of the last one, in steps."""

    def __init__(self, num_slots: int) -> None:
        super().__init__(num_slots)
        self._uses: dict[int, int] = {}
        self._last: dict[int, int] = {}

    def worth(self, expert: int, now: int) -> float:
        """Return uses by age."""
        uses = self._uses.get(expert, 0)
        return uses / (self._step - self._last.get(expert, _NEVER) + 1)

    def _use(self, experts: list[int]) -> None:
        for expert in experts:
            self._uses[expert] = self._uses.get(expert, 0) + 1
            self._last[expert] = self._step
