"""Slots whose number changes while they are in use."""

import itertools

import torch

from runtime.memory.arena import Arena
from runtime.memory.large_pages import Span
from runtime.memory.ledger import Ledger
from runtime.protocol.plan import MemoryPart


class SlotArena:
    """Slots that come and go one by one, each an arena of its own.

    A slot that is dropped gives its pages back to the system at once, so that what lies in RAM is
    never more than the ledger says. Neighbouring mappings are joined by the system, so many slots
    cost it little. Numbers of dropped slots are given out again, the lowest first.

    Threads: slots come and go in the engine thread; they are filled by whoever was handed them.
    """

    def __init__(self, ledger: Ledger, kind: MemoryPart, slot_bytes: int) -> None:
        self._ledger = ledger
        self._kind = kind
        self._slot_bytes = slot_bytes
        self._arenas: dict[int, Arena] = {}
        self._dropped: list[int] = []

    @property
    def num_slots(self) -> int:
        """How many slots there are."""
        return len(self._arenas)

    def add(self, slot_bytes: int | None = None) -> int:
        """Make one more slot, of the usual size unless another is given; return its number.

        Raises ``RAM_BUDGET_TOO_SMALL`` or ``OUT_OF_MEMORY``.
        """
        arena = Arena(self._ledger, self._kind, 1, slot_bytes or self._slot_bytes)
        number = self._dropped.pop() if self._dropped else len(self._arenas)
        self._arenas[number] = arena
        return number

    def view(self, number: int) -> memoryview:
        """Return the writable bytes of a slot, page-aligned; valid until it is dropped."""
        return self._arenas[number].slot(0)

    def tensor(self, number: int) -> torch.Tensor:
        """Return the same bytes as a tensor."""
        return self._arenas[number].tensor(0)

    def spans(self) -> list[Span]:
        """Return where slots lie now, in any thread; one may be dropped right afterwards."""
        return [arena.span for arena in list(self._arenas.values())]

    def drop(self, number: int) -> None:
        """Give a slot's memory back to the system and the ledger."""
        self._arenas.pop(number).close()
        self._dropped.append(number)
        self._dropped.sort(reverse=True)

    def close(self) -> None:
        """Drop all slots; may be called twice."""
        for number in list(self._arenas):
            self._arenas.pop(number).close()
        self._dropped.clear()

    def check(self) -> None:
        """Assert that slots are sound, numbered without gaps but dropped ones, and disjoint."""
        assert sorted([*self._arenas, *self._dropped]) == list(
            range(len(self._arenas) + len(self._dropped))
        )
        spans = []
        for arena in self._arenas.values():
            arena.check()
            spans.append((arena.address(0), arena.num_bytes))
        spans.sort()
        for (start, num_bytes), (following, _) in itertools.pairwise(spans):
            assert start + num_bytes <= following
