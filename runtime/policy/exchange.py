"""One set of slots for all layers: who gives a slot to whom while the model runs."""

from collections.abc import Container, Sequence
from typing import NamedTuple

from runtime.policy.base import RankingPolicy

_NOBODY = float("inf")


class Eviction(NamedTuple):
    """The expert of a layer that would leave so that another one can come."""

    layer_index: int
    expert: int
    worth: float


class SlotExchange:
    """Finds the resident expert of the lowest worth over all layers.

    Layers keep at least ``min_slots``. The slot of a victim of another layer changes its layer:
    the caller removes the expert, resizes both policies and calls ``note_change`` for both.
    What a layer would give is looked up again only every ``max_age_steps`` of its computations;
    the lowest of all is looked up again before it is named.
    """

    def __init__(
        self, policies: Sequence[RankingPolicy], min_slots: int = 0, max_age_steps: int = 4
    ) -> None:
        self._policies = tuple(policies)
        self._min_slots = min_slots
        self._max_age_steps = max_age_steps
        self._ages = [0] * len(self._policies)
        self._slots = [0] * len(self._policies)
        self._experts = [-1] * len(self._policies)
        self._worths = [_NOBODY] * len(self._policies)

    def note_step(self, layer_index: int, now: int) -> None:
        """Note that a layer computed and that its slots and residents stayed."""
        self._ages[layer_index] += 1
        if self._ages[layer_index] >= self._max_age_steps:
            self.note_change(layer_index, self._slots[layer_index], now)

    def note_change(self, layer_index: int, num_slots: int, now: int) -> None:
        """Note that the slots or residents of a layer changed."""
        self._ages[layer_index] = 0
        self._slots[layer_index] = num_slots
        if num_slots > self._min_slots:
            lowest = self._policies[layer_index].lowest((), now)
            if lowest is not None:
                self._worths[layer_index], self._experts[layer_index] = lowest
                return
        self._worths[layer_index] = _NOBODY

    def victim(self, layer_index: int, locked: Container[int], now: int) -> Eviction | None:
        """Return who leaves for an expert of a layer; never a locked one of that layer."""
        own = self._policies[layer_index].lowest(locked, now)
        own_worth = _NOBODY if own is None else own[0]
        worths = self._worths
        kept, worths[layer_index] = worths[layer_index], _NOBODY
        lowest = None if own is None else Eviction(layer_index, own[1], own_worth)
        while (best := min(worths)) < own_worth:
            giver = worths.index(best)
            self.note_change(giver, self._slots[giver], now)
            if worths[giver] <= best:
                lowest = Eviction(giver, self._experts[giver], worths[giver])
                break
        worths[layer_index] = kept
        return lowest

    def lowest(self) -> Eviction | None:
        """Return who was worth least of all layers when they were looked up last."""
        worth = min(self._worths)
        giver = self._worths.index(worth)
        return None if worth == _NOBODY else Eviction(giver, self._experts[giver], worth)

    def admits(self, layer_index: int, expert: int, victim: Eviction, now: int) -> bool:
        """Return whether an expert of a layer is worth more than the victim."""
        return self._policies[layer_index].worth(expert, now) > victim.worth
