"""Policies that do not learn: nobody is kept, or a list that was made before."""

from collections.abc import Mapping

from runtime.policy.ranked import RankedPolicy


class NonePolicy(RankedPolicy):
    """Admits nobody. What is forced to enter is worth nothing."""

    def admit(self, expert: int, now: int) -> bool:
        """Return False."""
        self.need((expert,), now)
        return False

    def worth(self, expert: int, now: int) -> float:
        """Return 0: nothing is worth keeping."""
        return 0.0

    def _use(self, experts: list[int]) -> None:
        """Forget it."""


class StaticPolicy(RankedPolicy):
    """Keeps the experts that were used most in a profile, whatever happens.

    ``uses`` says how often each expert was used; one that is missing was not.
    """

    def __init__(self, num_slots: int, uses: Mapping[int, float]) -> None:
        super().__init__(num_slots)
        self._uses = uses
        self._ranking = sorted(uses, key=lambda expert: (-uses[expert], -expert))
        self._hot = frozenset(self._ranking[:num_slots])

    def admit(self, expert: int, now: int) -> bool:
        """Return whether the expert is on the list of the profile."""
        self.need((expert,), now)
        return expert in self._hot

    def resize(self, num_slots: int) -> None:
        """Note that there are more or fewer slots now; the list is cut to them."""
        super().resize(num_slots)
        self._hot = frozenset(self._ranking[:num_slots])

    def worth(self, expert: int, now: int) -> float:
        """Return how often the profile used an expert."""
        return self._uses.get(expert, 0.0)

    def _use(self, experts: list[int]) -> None:
        """Forget it: the profile decides."""
