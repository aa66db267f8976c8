"""Segmented LRU: newcomers on probation, experts that were used again protected."""

from collections.abc import Container, Iterable


class SlruPolicy:
    """Keeps two orders of last use and lets newcomers on probation leave first.

    A use on probation protects; what the protected part has too many of goes back to probation
    as its most recent::

        leaves first  [ probation: old .. new ]  [ protected: old .. new ]  leaves last
    """

    def __init__(self, num_slots: int, protected_share: float = 0.8) -> None:
        self._protected_share = protected_share
        self._num_slots = num_slots
        self._probation: dict[int, None] = {}
        self._protected: dict[int, None] = {}

    def admit(self, expert: int, now: int) -> bool:
        """Return True: newcomers can only push out each other."""
        return self._num_slots > 0

    def insert(self, expert: int, now: int) -> None:
        """Note that an expert became resident, on probation."""
        if expert in self._probation or expert in self._protected:
            raise ValueError(f"expert {expert} is resident already")
        if len(self._probation) + len(self._protected) >= self._num_slots:
            raise ValueError(f"all {self._num_slots} slots are taken")
        self._probation[expert] = None

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Note that resident experts were used; they are protected from now on."""
        for expert in experts:
            if expert in self._protected:
                del self._protected[expert]
            else:
                del self._probation[expert]
            self._protected[expert] = None
        self._demote()

    def victim(self, locked: Container[int], now: int) -> int | None:
        """Return the unlocked expert that is next to leave, or None."""
        for order in (self._probation, self._protected):
            for expert in order:
                if expert not in locked:
                    return expert
        return None

    def remove(self, expert: int) -> None:
        """Note that an expert is no longer resident."""
        del (self._protected if expert in self._protected else self._probation)[expert]

    def resize(self, num_slots: int) -> None:
        """Note that there are more or fewer slots now, never fewer than resident experts."""
        num_residents = len(self._probation) + len(self._protected)
        if num_slots < num_residents:
            raise ValueError(f"{num_slots} slots for {num_residents} resident experts")
        self._num_slots = num_slots
        self._demote()

    def _demote(self) -> None:
        """Send the oldest of too many protected experts back to probation."""
        max_protected = int(self._num_slots * self._protected_share)
        while len(self._protected) > max_protected:
            oldest = next(iter(self._protected))
            del self._protected[oldest]
            self._probation[oldest] = None
