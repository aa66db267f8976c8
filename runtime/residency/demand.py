"""The experts that one computation misses: all requested at once, handed out as they arrive."""

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence

from runtime.residency.lanes import ReadLanes, ReadOutcome
from runtime.residency.places import RamPlaces
from runtime.spec.tensors import ExpertId

TakeBack = Callable[[int, int, bool], None]
"""Takes an expert and its lent slot back, and whether the slot holds the expert."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Read:
    expert: int
    slot: int
    outcome: ReadOutcome

    @property
    def is_good(self) -> bool:
        """Whether a finished read filled the slot."""
        return self.outcome.exception() is None and self.outcome.result() is None


class Demand:
    """Reads the missing experts of a layer in their order, as many at a time as slots are free.

    Whoever computes takes each expert in turn, and says with ``settle`` that all of those are
    computed, so that their slots can be used again. ``close`` must be called at the end.

    Threads: used by the engine thread.
    """

    def __init__(
        self,
        layer: int,
        missing: Sequence[int],
        lanes: ReadLanes,
        places: RamPlaces,
        take_back: TakeBack,
    ) -> None:
        self._layer = layer
        self._waiting = deque(missing)
        self._lanes = lanes
        self._places = places
        self._take_back = take_back
        self._reads: dict[int, _Read] = {}
        self._used: list[_Read] = []
        self._request()

    @property
    def is_short(self) -> bool:
        """Whether some were not requested yet for want of slots."""
        return bool(self._waiting)

    def is_there(self, expert: int) -> bool:
        """Whether an expert can be taken without waiting."""
        read = self._reads.get(expert)
        return read is not None and read.outcome.done()

    def take(self, expert: int) -> int:
        """Wait for an expert and return its slot; raises ``LarderError`` if it was not read."""
        read = self._reads[expert]
        error = read.outcome.result()
        if error is not None:
            raise error
        self._used.append(self._reads.pop(expert))
        return read.slot

    def settle(self) -> None:
        """Give back what was taken, and request what waited for the slots."""
        used, self._used = self._used, []
        for read in used:
            self._take_back(read.expert, read.slot, True)
        self._request()

    def close(self) -> None:
        """Wait for everything that was requested and give it back, computed or not."""
        for read in (*self._used, *self._reads.values()):
            self._take_back(read.expert, read.slot, read.is_good)
        self._used.clear()
        self._reads.clear()

    def _request(self) -> None:
        while self._waiting and self._places.num_free:
            expert, slot = self._waiting.popleft(), self._places.take()
            outcome = self._lanes.demand(ExpertId(self._layer, expert), self._places.view(slot))
            self._reads[expert] = _Read(expert, slot, outcome)
