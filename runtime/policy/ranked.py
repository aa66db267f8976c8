"""What policies have in common that give each expert a worth and let the lowest leave."""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from itertools import repeat


class RankedPolicy(ABC):
    """Keeps the resident experts of one layer and lets the one of the lowest worth leave.

    A kind of policy says what it remembers of a step (``_begin_step``, ``_use``) and what an expert
    is worth, which may change when something is needed and at no other time. Equal worths leave in
    the order of their numbers.

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
        self._lowest: tuple[float, int] | None = None
        """Worth and number of the resident that would leave, while that is known."""

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
            self._lowest = None
            fresh = list(experts)
        else:
            needed = self._needed
            fresh = [expert for expert in experts if expert not in needed]
        if fresh:
            self._needed.update(dict.fromkeys(fresh))
            self._use(fresh)
            self._lowest = None

    def admit(self, expert: int, now: int) -> bool:
        """Return whether a needed expert may take a slot."""
        self._need_one(expert, now)
        if not self._num_slots or not self.is_selective:
            return self._num_slots > 0
        if len(self._residents) < self._num_slots:
            return True
        lowest = self.lowest((), now)
        return lowest is not None and self.worth(expert, now) > lowest[0]

    def insert(self, expert: int, now: int) -> None:
        """Note that an expert became resident; it counts as needed now."""
        self._take_slot(expert)
        self._need_one(expert, now)
        if self._lowest is not None:
            self._lowest = min(self._lowest, (self.worth(expert, now), expert))

    def preload(self, expert: int) -> None:
        """Note that an expert became resident that nobody needed yet."""
        self._take_slot(expert)
        self._lowest = None

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Note that resident experts were used."""
        self.need(experts, now)

    def victim(self, locked: Container[int], now: int) -> int | None:
        """Return the unlocked expert of the lowest worth, or None."""
        lowest = self.lowest(locked, now)
        return None if lowest is None else lowest[1]

    def lowest(self, locked: Container[int], now: int) -> tuple[float, int] | None:
        """Return worth and number of the unlocked expert of the lowest worth, or None."""
        lowest = self._lowest
        if lowest is None or lowest[1] in locked:
            return self._find_lowest(locked, now)
        return lowest

    def remove(self, expert: int) -> None:
        """Note that an expert is no longer resident."""
        del self._residents[expert]
        if self._lowest is not None and self._lowest[1] == expert:
            self._lowest = None

    def resize(self, num_slots: int) -> None:
        """Note that there are more or fewer slots now, never fewer than resident experts."""
        if num_slots < len(self._residents):
            raise ValueError(f"{num_slots} slots for {len(self._residents)} resident experts")
        self._num_slots = num_slots

    def _find_lowest(self, locked: Container[int], now: int) -> tuple[float, int] | None:
        """Look up worth and number of the unlocked expert of the lowest worth."""
        unlocked = [expert for expert in self._residents if expert not in locked]
        if not unlocked:
            return None
        lowest = min(zip(map(self.worth, unlocked, repeat(now)), unlocked, strict=True))
        if len(unlocked) == len(self._residents):
            self._lowest = lowest
        return lowest

    def _need_one(self, expert: int, now: int) -> None:
        if now != self._now or expert not in self._needed:
            self.need((expert,), now)

    def _take_slot(self, expert: int) -> None:
        if expert in self._residents:
            raise ValueError(f"expert {expert} is resident already")
        if len(self._residents) >= self._num_slots:
            raise ValueError(f"all {self._num_slots} slots are taken")
        self._residents[expert] = None
