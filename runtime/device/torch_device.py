"""Accelerators that torch can drive: memory and queues of torch's own."""

import logging
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from runtime.device.graphs import recorder_of
from runtime.device.link import Link, LinkEvent
from runtime.device.modules import DeviceModule, module_of
from runtime.device.torch_arena import TorchArena
from runtime.errors import LarderError
from runtime.memory.ledger import Ledger
from runtime.protocol.plan import MemoryPart
from runtime.spec.footprint import STAGING_BYTES

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


class TorchDevice:
    """A device of torch; see ``Device``.

    Bytes travel through two page-locked halves of a staging buffer in a queue of their own, so
    that one half is filled while the other is on its way. With torch's ``cpu`` in place of an
    accelerator the same code runs without queues and page-locked memory; ``module`` can stand for
    the one that torch has for a kind.
    """

    is_simulated = False
    num_host_bytes = 0

    def __init__(
        self,
        device: str,
        budget_bytes: int,
        torch_device: torch.device | None = None,
        module: DeviceModule | None = None,
    ) -> None:
        self.device = device
        self.torch_device = torch.device(device) if torch_device is None else torch_device
        self.ledger = Ledger(budget_bytes)
        self._module = module_of(self.torch_device.type) if module is None else module
        self.name = "torch's processor"
        if self._module is not None:
            self.name = str(self._module.get_device_properties(self.torch_device).name)
        has_queues = self._module is not None
        half_bytes = STAGING_BYTES // 2
        self._halves = [staging_of(half_bytes, is_locked=has_queues) for _ in range(2)]
        self._turn = 0
        self._copies = None if self._module is None else self._module.Stream(self.torch_device)
        self.recorder = recorder_of(self.torch_device)
        self._left: list[Any] = [None, None]
        """The end of what was last sent from each half."""
        self._link = Link(self._move_piece, half_bytes, self._end_copy)
        self._arenas = weakref.WeakSet[TorchArena]()
        """Those that somebody has; of a long prompt there are hundreds, one after the other."""

    @property
    def num_bytes_copied(self) -> int:
        """What went to the device over its link so far."""
        return self._link.num_bytes

    @property
    def free_bytes(self) -> int | None:
        """What nobody holds of the card's memory now; of torch's processor nothing is told."""
        module = self._module
        return None if module is None else int(module.mem_get_info(self.torch_device)[0])

    def arena(self, kind: MemoryPart, num_slots: int, slot_bytes: int) -> TorchArena:
        """Return an arena with so many slots."""
        arena = TorchArena(self.ledger, kind, slot_bytes, self.torch_device, self.trim)
        try:
            while arena.num_slots < num_slots:
                arena.extend(num_slots - arena.num_slots)
        except LarderError:
            arena.close()
            raise
        self._arenas.add(arena)
        return arena

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> LinkEvent:
        """Begin to copy host bytes to a part of a device slot."""
        return self._link.copy(source, target)

    def send(self, source: torch.Tensor) -> torch.Tensor:
        """Return a small host tensor on the device, in the queue of computations."""
        target = source.to(self.torch_device)
        self._link.note(source.nbytes)
        return target

    def launch(self, work: Callable[[], T]) -> T:
        """Put ``work`` into the device's queue; its tensors are ready when they are used there."""
        if self._module is None:
            return work()
        with self._module.device(self.torch_device):
            return work()

    def trim(self) -> None:
        """Let torch give back what it keeps for later."""
        if self._module is not None:
            self._module.empty_cache()

    def synchronize(self) -> None:
        """Wait until everything that was launched has ended."""
        if self._module is not None:
            self._module.current_stream(self.torch_device).synchronize()

    def close(self) -> None:
        """End copies and give all memory back; may be called twice."""
        self._link.close()
        self.synchronize()
        for arena in list(self._arenas):
            arena.close()
        self._arenas.clear()
        self.trim()

    def _move_piece(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy a piece by way of the staging buffer; called by the link's thread."""
        self._turn ^= 1
        half = self._halves[self._turn][: source.numel()]
        if self._module is None or self._copies is None:
            half.copy_(source)
            target.copy_(half)
            return
        left = self._left[self._turn]
        if left is not None:
            left.synchronize()
        half.copy_(source)
        with self._module.stream(self._copies):
            target.copy_(half, non_blocking=True)
            event = self._copies.record_event()
        self._left[self._turn] = event

    def _end_copy(self) -> None:
        """Wait for the pieces that are on their way; called by the link's thread."""
        if self._copies is not None:
            self._copies.synchronize()


def staging_of(num_bytes: int, *, is_locked: bool) -> torch.Tensor:
    """Return room for bytes on their way, page-locked where the system allows it."""
    if is_locked:
        try:
            return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True)
        except RuntimeError:
            _LOG.warning("no page-locked RAM: copies to the card take longer", exc_info=True)
    return torch.empty(num_bytes, dtype=torch.uint8)
