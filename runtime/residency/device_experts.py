"""Experts on a device: a cache above the RAM slots, filled from them over the link."""

import dataclasses
from collections.abc import Container, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from runtime.device.base import Device, DeviceEvent
from runtime.errors import LarderError
from runtime.kernels.matrix import Slot
from runtime.policy.device_choice import DeviceChoice, UploadTerms
from runtime.protocol.plan import MemoryPart
from runtime.residency.shape import CacheShape
from runtime.residency.slots import SlotTable

LayerExpert = tuple[int, int]
"""The number of a layer in the model, and of an expert in it."""


@dataclasses.dataclass(frozen=True, slots=True)
class WantedUpload:
    """An expert that is to be uploaded, and the one that leaves for it."""

    layer: int
    expert: int
    left: LayerExpert | None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Coming:
    """An expert on its way to a device slot."""

    layer: int
    expert: int
    slot: int
    event: DeviceEvent


class DeviceExperts:
    """Which experts lie on the device, and which are on their way there.

    Who comes and who leaves is decided by ``policy.device_choice`` between two steps, for all
    layers at once; slots are one pool of the arena. Uploads begin and are published between two
    steps, so that within a step nothing changes; until then the processor computes the expert
    from RAM.

    Threads: used by the engine thread.
    """

    def __init__(
        self,
        device: Device,
        shape: CacheShape,
        record_bytes: int,
        terms: UploadTerms | None = None,
    ) -> None:
        self._device = device
        self._record_bytes = record_bytes
        self._arena = device.arena(MemoryPart.EXPERTS, 0, record_bytes)
        self._layers = shape.moe_layers
        self._index_of = {layer: index for index, layer in enumerate(shape.moe_layers)}
        self._choice = DeviceChoice([0] * len(shape.moe_layers), shape.num_experts, terms)
        self.tables = {
            layer: SlotTable(device.device, shape.num_experts) for layer in shape.moe_layers
        }
        self.slots: dict[int, Slot] = {}
        self._free: list[int] = []
        self._coming: list[_Coming] = []
        try:
            self.grow(shape.above_per_layer)
        except LarderError:
            self.close()
            raise

    @property
    def device(self) -> Device:
        """The device that holds them."""
        return self._device

    @property
    def slots_per_layer(self) -> tuple[int, ...]:
        """Device slots of each MoE layer now; the layers exchange them."""
        return self._choice.slots

    @property
    def num_resident(self) -> int:
        """Experts that lie on the device."""
        return sum(table.num_resident for table in self.tables.values())

    def find(self, layer: int, experts: Sequence[int]) -> dict[int, Slot]:
        """Return those experts of a layer that lie on the device, with their slots."""
        table, slots = self.tables[layer], self.slots
        return {expert: slots[table.slot_of[expert]] for expert in experts if expert in table}

    def need(self, layer: int, experts: Sequence[int]) -> None:
        """Note the distinct experts that one token needs of a layer."""
        self._choice.need(self._index_of[layer], experts)

    def need_rows(self, layer: int, ids: npt.NDArray[np.integer]) -> None:
        """Note what the rows of a prompt need of a layer, ``[n, top_k]``."""
        num_experts = len(self.tables[layer].slot_of)
        counts = np.bincount(ids.reshape(-1), minlength=num_experts)
        self._choice.need_rows(self._index_of[layer], counts, len(ids))

    def choose(self, in_ram: Mapping[int, Container[int]]) -> list[WantedUpload]:
        """Begin a step; return what is to be uploaded, each by ``upload``, in this order.

        Only what lies in RAM can be uploaded.
        """
        layers = self._layers
        self._choice.end_step()
        chosen = self._choice.choose(lambda index, expert: expert in in_ram[layers[index]])
        return [
            WantedUpload(
                layers[each.layer],
                each.expert,
                None if each.left is None else (layers[each.left[0]], each.left[1]),
            )
            for each in chosen
        ]

    def upload(self, wanted: WantedUpload, source: Slot) -> None:
        """Begin to copy an expert from a RAM slot that stays as it is until it is published."""
        if wanted.left is not None:
            layer, expert = wanted.left
            self._free.append(self.tables[layer].clear(expert))
        slot = self._free.pop()
        # A slot here has the size of the largest record.
        record = source.bytes()
        event = self._device.copy(record, self._arena.tensor(slot)[: len(record)])
        self._coming.append(_Coming(wanted.layer, wanted.expert, slot, event))

    def wait_copied(self, layer: int) -> list[int]:
        """Wait until uploads of a layer have left RAM; return their experts, not published yet."""
        waiting = [coming for coming in self._coming if coming.layer == layer]
        for coming in waiting:
            coming.event.wait()
        return [coming.expert for coming in waiting]

    def publish(self, *, is_waiting: bool = False) -> list[LayerExpert]:
        """Publish uploads that have ended, all if waiting; return them as (layer, expert)."""
        if not self._coming:
            return []
        published: list[LayerExpert] = []
        left: list[_Coming] = []
        for coming in self._coming:
            if not (is_waiting or coming.event.is_done):
                left.append(coming)
                continue
            coming.event.wait()
            self.tables[coming.layer].fill(coming.slot, coming.expert)
            self._choice.publish(self._index_of[coming.layer], coming.expert)
            published.append((coming.layer, coming.expert))
        self._coming = left
        return published

    def shrink(self, slots_per_layer: Sequence[int]) -> list[LayerExpert]:
        """Have no more slots than these together; return the experts (layer, expert) that left.

        Nothing may be locked or on its way. Those that are expected least leave, and those that
        the card refuses room where slots move together: then there are fewer slots.
        """
        self._device.synchronize()
        left = [
            (self._layers[index], expert)
            for index, expert in self._choice.shrink(sum(slots_per_layer))
        ]
        for layer, expert in left:
            self._free.append(self.tables[layer].clear(expert))
        num_fewer = max(0, len(self.slots) - sum(slots_per_layer))
        if not num_fewer:
            return left
        dropped = [self._free.pop() for _ in range(num_fewer)]
        kept = self.slots.keys() - dropped
        # As long as anybody holds a slot, its memory is not free.
        self.slots.clear()
        lost = frozenset(self._arena.drop(dropped).lost)
        self._device.synchronize()
        for slot in sorted(kept - lost):
            self.slots[slot] = Slot.from_buffer(self._arena.tensor(slot), self._device.device)
        self._device.trim()
        return [*left, *self._lose(lost)]

    def _lose(self, lost: frozenset[int]) -> list[LayerExpert]:
        """Note that slots are no more; return the experts (layer, expert) that lay in them."""
        gone = [
            (layer, expert)
            for layer, table in self.tables.items()
            for expert in table.experts
            if table.slot_of[expert] in lost
        ]
        for layer, expert in gone:
            self.tables[layer].clear(expert)
            self._choice.forget(self._index_of[layer], expert)
        self._free = [slot for slot in self._free if slot not in lost]
        self._choice.shrink(len(self.slots))
        return gone

    def grow(self, slots_per_layer: Sequence[int]) -> None:
        """Have no fewer slots than these together."""
        while len(self.slots) < sum(slots_per_layer):
            for slot in self._arena.extend(sum(slots_per_layer) - len(self.slots)):
                self.slots[slot] = Slot.from_buffer(self._arena.tensor(slot), self._device.device)
                self._free.insert(0, slot)
            self._choice.grow(len(self.slots))

    def close(self) -> None:
        """Wait for what is on its way and give the slots back; may be called twice."""
        for coming in self._coming:
            coming.event.wait()
        self._coming.clear()
        self.tables.clear()
        self.slots.clear()
        self._arena.close()

    def check(self) -> None:
        """Assert that slots, tables, the choice and the arena agree."""
        self._arena.check()
        self._choice.check()
        taken = [x for table in self.tables.values() for x in table.slot_of if x in self.slots]
        coming = [each.slot for each in self._coming]
        assert sorted([*taken, *coming, *self._free]) == sorted(self.slots)
        assert len(taken) == self.num_resident
        assert sum(self.slots_per_layer) == self._arena.num_slots == len(self.slots)
        for (layer, table), row in zip(
            self.tables.items(), self._choice.residents.tolist(), strict=True
        ):
            assert [expert in table for expert in range(len(row))] == row, f"layer {layer}"
