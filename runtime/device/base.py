"""What every accelerator offers, a simulated one too."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import torch

from runtime.device.graphs import GraphRecorder
from runtime.memory.ledger import Ledger
from runtime.protocol.plan import MemoryPart

T = TypeVar("T")


class DeviceEvent(Protocol):
    """The end of a copy.

    Threads: any thread may ask.
    """

    @property
    def is_done(self) -> bool:
        """Whether the copy has ended; never waits."""

    def wait(self) -> None:
        """Return when it has ended; raise what went wrong."""


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped:
    """What became of other slots when some were dropped."""

    moved: list[int]
    """Those that lie elsewhere from now on, ascending."""
    lost: list[int]
    """Those that are no more, ascending: the card refused them room while they moved."""


class DeviceArena(Protocol):
    """Slots of one size in a device's memory, counted in its ledger.

    Threads: used by the engine thread.
    """

    @property
    def num_slots(self) -> int:
        """How many slots there are."""

    def extend(self, num_slots: int) -> list[int]:
        """Make more slots, at least one and at most so many; return their numbers.

        As many as are asked for at once. Raises ``RAM_BUDGET_TOO_SMALL`` (of the device's
        budget), ``VRAM_FULL`` or ``OUT_OF_MEMORY``.
        """

    def tensor(self, number: int) -> torch.Tensor:
        """Return the bytes of a slot, uint8 of one dimension, on the device."""

    def drop(self, numbers: Iterable[int]) -> Dropped:
        """Give slots' memory back; others may move meanwhile.

        No copy or launch may be using any slot, nor begin before ``synchronize``. What ``tensor``
        returned before may not be held by anybody, or its memory is not free.
        """

    def close(self) -> None:
        """Drop all slots; may be called twice."""

    def check(self) -> None:
        """Assert that slots are sound and counted."""


class Device(Protocol):
    """One accelerator for as long as a model is loaded.

    Copies run beside computations. A copy and a launch that touch the same bytes are kept apart by
    who asks for them: by waiting for the event, or for ``synchronize``.

    Threads: used by the engine thread; any thread may read properties.
    """

    @property
    def device(self) -> str:
        """Its id, ``cuda:0`` or ``simulated:0``."""

    @property
    def name(self) -> str:
        """Its name for a person."""

    @property
    def is_simulated(self) -> bool:
        """Whether it is made up of this PC's processor and RAM."""

    @property
    def ledger(self) -> Ledger:
        """The account of its budget."""

    @property
    def torch_device(self) -> torch.device:
        """Where tensors for its computations lie."""

    @property
    def num_bytes_copied(self) -> int:
        """What went to the device over its link so far."""

    @property
    def num_host_bytes(self) -> int:
        """Bytes of this process' resident size that stand for the device's memory."""

    @property
    def free_bytes(self) -> int | None:
        """What nobody holds of the whole device's memory now, None where that is not told."""

    @property
    def recorder(self) -> GraphRecorder | None:
        """What records launches to start them as one, None where nothing can."""

    def arena(self, kind: MemoryPart, num_slots: int, slot_bytes: int) -> DeviceArena:
        """Return an arena with so many slots; raises like ``DeviceArena.extend``."""

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> DeviceEvent:
        """Begin to copy host bytes to a part of a device slot; both uint8 and of one length.

        The source must stay as it is, and the target be used by nobody, until the event.
        """

    def send(self, source: torch.Tensor) -> torch.Tensor:
        """Return a small host tensor on the device, ahead of the copies that are on their way.

        At most one piece of these passes first.
        """

    def launch(self, work: Callable[[], T]) -> T:
        """Run ``work`` on the device after what was launched before; its result may come later."""

    def trim(self) -> None:
        """Give memory back to the system that no arena holds any more."""

    def synchronize(self) -> None:
        """Wait until everything that was launched has ended."""

    def close(self) -> None:
        """End copies and give all memory back; may be called twice."""
