"""What policies have in common that give each expert a worth and let the lowest leave."""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable


class RankedPolicy(ABC):
    """Keeps the resident experts of one layer and lets the one of the lowest worth leave.

    A kind of policy says what it remembers of a step (``_begin_step``, ``_use``) and what an expert
    is worth. Equal worths leave in the order of their numbers.

    A step is one computation of the layer: all calls with the same ``now``. Whichever call names a
    needed expert first, the use counts once a step.
    """

    is_selective = False
    """Whether a candidate is admitted only if it is worth more than the victim."""

    def __init__(self, num_slots: int) -> None:
        self._num_slots = num_slots
        self._residents: dict[int, None] = {}
        self._needed: dict[int, None] = {}
        self._now: int | None = None
        self._step = 0

    @abstractmethod
    def worth(self, expert: int, now: int) -> float:
        """Return what it is worth that an expert is resident; higher stays longer."""

    @abstractmethod
    def _use(self, experts: list[int]) -> None:
        """Note experts that are needed in the present step, each once."""

    def _begin_step(self) -> None:
        """Begin a step; until the end of this method ``_needed`` is what the last one needed."""
        self._step += 1
        self._needed = {}

    def need(self, experts: Iterable[int], now: int) -> None:
        """Note distinct experts that a computation needs, resident or not."""
        if now != self._now:
            self._begin_step()
            self._now = now
        needed = self._needed
        fresh = [expert for expert in experts if expert not in needed]
        if fresh:
            needed.update(dict.fromkeys(fresh))
            self._use(fresh)

    def admit(self, expert: int, now: int) -> bool:
        """Return whether a needed expert may take a slot."""
        self.need((expert,), now)
        if not self._num_slots or not self.is_selective:
            return self._num_slots > 0
        if len(self._residents) < self._num_slots:
            return True
        victim = self.victim((), now)
        return victim is not None and self.worth(expert, now) > self.worth(victim, now)

    def insert(self, expert: int, now: int) -> None:
        """Note that an expert became resident; it counts as needed now."""
        self.preload(expert)
        self.need((expert,), now)

    def preload(self, expert: int) -> None:
        """Note that an expert became resident that nobody needed yet."""
        if expert in self._residents:
            raise ValueError(f"expert {expert} is resident already")
        if len(self._residents) >= self._num_slots:
            raise ValueError(f"all {self._num_slots} slots are taken")
        self._residents[expert] = None

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Note that resident experts were used."""
        self.need(experts, now)

    def victim(self, locked: Container[int], now: int) -> int | None:
        """Return the unlocked expert of the lowest worth, or None."""
        lowest: tuple[float, int] | None = None
        for expert in self._residents:
            if expert not in locked:
                rank = (self.worth(expert, now), expert)
                if lowest is None or rank < lowest:
                    lowest = rank
        return None if lowest is None else lowest[1]

    def remove(self, expert: int) -> None:
        """Note that an expert is no longer resident."""
        del self._residents[expert]

    def resize(self, num_slots: int) -> None:
        """Note that there are more or fewer slots now, never fewer than resident experts."""
        if num_slots < len(self._residents):
            raise ValueError(f"{num_slots} slots for {len(self._residents)} resident experts")
        self._num_slots = num_slots
