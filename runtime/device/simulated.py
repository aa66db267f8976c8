"""An accelerator that is not there: a second arena in RAM behind a link of a stated speed.

It computes with the processor's own kernels, so that answers are the same to the last bit. Its
figures are those of no real card.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch

from runtime.device.base import Dropped
from runtime.device.link import Link, LinkEvent
from runtime.errors import LarderError
from runtime.hardware.pace import Pace, PaceClock
from runtime.memory.ledger import Ledger
from runtime.memory.slot_arena import SlotArena
from runtime.protocol.plan import MemoryPart

T = TypeVar("T")
PIECE_BYTES = 256 * 1024
"""The link is held back after each piece of this size."""


class SimulatedArena:
    """Slots in RAM that are counted as the device's memory; all their pages are in use at once."""

    def __init__(self, ledger: Ledger, kind: MemoryPart, num_slots: int, slot_bytes: int) -> None:
        self._slot_bytes = slot_bytes
        self._arena = SlotArena(ledger, kind, slot_bytes)
        try:
            while self.num_slots < num_slots:
                self.extend(1)
        except LarderError:
            self.close()
            raise

    @property
    def num_slots(self) -> int:
        """How many slots there are."""
        return self._arena.num_slots

    def extend(self, num_slots: int) -> list[int]:
        """Make one more slot and return its number."""
        del num_slots
        number = self._arena.add()
        self._arena.tensor(number).zero_()
        return [number]

    def tensor(self, number: int) -> torch.Tensor:
        """Return the bytes of a slot."""
        return self._arena.tensor(number)

    def drop(self, numbers: Iterable[int]) -> Dropped:
        """Give slots' memory back; all others stay where they are."""
        for number in numbers:
            self._arena.drop(number)
        return Dropped([], [])

    def close(self) -> None:
        """Drop all slots; may be called twice."""
        self._arena.close()

    def check(self) -> None:
        """Assert that slots are sound and counted."""
        self._arena.check()


class SimulatedDevice:
    """A device made up of RAM and the processor; see ``Device``."""

    is_simulated = True
    free_bytes = None
    recorder = None
    torch_device = torch.device("cpu")

    def __init__(
        self,
        device: str,
        name: str,
        budget_bytes: int,
        link_bytes_per_s: float,
        clock: PaceClock | None = None,
    ) -> None:
        self.device = device
        self.name = name
        self.ledger = Ledger(budget_bytes)
        self._pace = Pace(link_bytes_per_s, clock)
        self._link = Link(self._move_piece, PIECE_BYTES)
        self._arenas = weakref.WeakSet[SimulatedArena]()
        """Those that somebody has; of a long prompt there are hundreds, one after the other."""

    @property
    def num_bytes_copied(self) -> int:
        """What went to the device over its link so far."""
        return self._link.num_bytes

    @property
    def num_host_bytes(self) -> int:
        """What its memory takes of RAM."""
        by_kind = self.ledger.by_kind()
        return sum(by_kind.values()) - by_kind[MemoryPart.WORK]

    def arena(self, kind: MemoryPart, num_slots: int, slot_bytes: int) -> SimulatedArena:
        """Return an arena with so many slots."""
        arena = SimulatedArena(self.ledger, kind, num_slots, slot_bytes)
        self._arenas.add(arena)
        return arena

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> LinkEvent:
        """Begin to copy host bytes to a part of a device slot."""
        return self._link.copy(source, target)

    def send(self, source: torch.Tensor) -> torch.Tensor:
        """Return a copy of a small tensor as soon as the link, held by one piece, lets it by."""
        target = torch.empty_like(source)
        self._pace.move(source.nbytes, lambda: target.copy_(source))
        self._link.note(source.nbytes)
        return target

    def launch(self, work: Callable[[], T]) -> T:
        """Run ``work`` here and now."""
        return work()

    def trim(self) -> None:
        """Do nothing: what arenas drop goes back at once."""

    def synchronize(self) -> None:
        """Return at once: every launch has ended when it returns."""

    def close(self) -> None:
        """End copies and give all memory back; may be called twice."""
        self._link.close()
        for arena in list(self._arenas):
            arena.close()
        self._arenas.clear()

    def _move_piece(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy a piece, no sooner than the link's speed allows; called by the link's thread."""
        self._pace.move(source.numel(), lambda: target.copy_(source))
