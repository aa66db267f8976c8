"""Least recently used: the expert that was not needed for the longest time leaves."""

from collections.abc import Container, Iterable


class LruPolicy:
    """Orders the resident experts of one layer by their last use; admits every candidate.

    Within one step the order of use decides, so that the answer depends on nothing else.
    """

    def __init__(self, num_slots: int) -> None:
        self._num_slots = num_slots
        self._by_last_use: dict[int, None] = {}

    def admit(self, expert: int, now: int) -> bool:
        """Return True: what was needed now is the likeliest to be needed next."""
        del expert, now
        return self._num_slots > 0

    def insert(self, expert: int, now: int) -> None:
        """Note that an expert became resident; it counts as used now."""
        del now
        if expert in self._by_last_use:
            raise ValueError(f"expert {expert} is resident already")
        if len(self._by_last_use) >= self._num_slots:
            raise ValueError(f"all {self._num_slots} slots are taken")
        self._by_last_use[expert] = None

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Note that resident experts were used, in this order."""
        del now
        order = self._by_last_use
        for expert in experts:
            del order[expert]
            order[expert] = None

    def victim(self, locked: Container[int], now: int) -> int | None:
        """Return the unlocked expert that was used longest ago, or None."""
        del now
        return next((expert for expert in self._by_last_use if expert not in locked), None)

    def remove(self, expert: int) -> None:
        """Note that an expert is no longer resident."""
        del self._by_last_use[expert]

    def resize(self, num_slots: int) -> None:
        """Note that there are more or fewer slots now, never fewer than resident experts."""
        if num_slots < len(self._by_last_use):
            raise ValueError(f"{num_slots} slots for {len(self._by_last_use)} resident experts")
        self._num_slots = num_slots
