"""The experts that one computation misses: all requested at once, handed out as they arrive."""

from collections import deque
from collections.abc import Callable, Sequence

from runtime.residency.lanes import ReadLanes
from runtime.residency.lent_reads import LentRead, begin_reads
from runtime.residency.places import RamPlaces

TakeBack = Callable[[int, int, bool], None]
"""Takes an expert and its lent slot back, and whether the slot holds the expert."""


class Demand:
    """Reads the missing experts of a layer in their order, as many at a time as slots are free.

    Those that were guessed, and so are read already, are waited for with the others.

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
        guessed: Sequence[LentRead] = (),
    ) -> None:
        self._layer = layer
        self._reads = {read.expert: read for read in guessed}
        self._waiting = deque(expert for expert in missing if expert not in self._reads)
        self._lanes = lanes
        self._places = places
        self._take_back = take_back
        self._used: list[LentRead] = []
        self._half = max(1, (places.num_free(layer) + len(guessed)) // 2)
        self._request()

    @property
    def is_short(self) -> bool:
        """Whether some were not requested yet for want of slots."""
        return bool(self._waiting)

    @property
    def is_due(self) -> bool:
        """Whether what was taken should be computed: others wait for its slots, and half are taken.

        While one half is computed the other is read.
        """
        return bool(self._waiting) and len(self._used) >= self._half

    def is_there(self, expert: int) -> bool:
        """Whether an expert can be taken without waiting."""
        read = self._reads.get(expert)
        return read is not None and read.reads.is_done(read.number)

    def take(self, expert: int) -> int:
        """Wait for an expert and return its slot; raises ``LarderError`` if it was not read."""
        read = self._reads[expert]
        error = read.reads.wait(read.number)
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
        """Give everything back that was requested, computed or not; reads in flight are ended."""
        used, self._used = self._used, []
        for read in used:
            self._take_back(read.expert, read.slot, True)
        left, self._reads = self._reads, {}
        for read in left.values():
            read.reads.abandon()
        for read in left.values():
            is_good = read.reads.wait(read.number) is None
            self._take_back(read.expert, read.slot, is_good)

    def _request(self) -> None:
        num_reads = min(len(self._waiting), self._places.num_free(self._layer))
        if not num_reads:
            return
        experts = [self._waiting.popleft() for _ in range(num_reads)]
        for read in begin_reads(self._layer, experts, self._places, self._lanes.demand):
            self._reads[read.expert] = read
