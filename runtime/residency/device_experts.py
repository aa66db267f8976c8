"""Experts on a device: a cache above the RAM slots, filled from them over the link."""

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence

from runtime.device.base import Device, DeviceEvent
from runtime.kernels.matrix import Slot
from runtime.policy.base import PolicyFactory
from runtime.policy.lru import LruPolicy
from runtime.protocol.plan import MemoryPart
from runtime.residency.shape import CacheShape
from runtime.residency.slots import NOWHERE, SlotTable

MAX_UPLOADS_PER_LAYER = 2
"""Uploads of a layer that may be on their way at once, so that a slow link is no long queue."""
RECENT_STEPS = 32
"""An expert that is asked for twice within so many steps may take a device slot of another."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Upload:
    """An expert on its way to a device slot."""

    layer: int
    expert: int
    slot: int
    event: DeviceEvent


class DeviceExperts:
    """Which experts lie on the device, and which are on their way there.

    Admission is naive: a candidate comes if there is a free slot or if it was asked for twice
    recently, and takes the place of the one that was not used for the longest time. Uploads begin
    and are published between two steps, so that within a step nothing changes; until then the
    processor computes the expert from RAM.

    Threads: used by the engine thread.
    """

    def __init__(
        self,
        device: Device,
        shape: CacheShape,
        record_bytes: int,
        policy_factory: PolicyFactory = LruPolicy,
    ) -> None:
        self._device = device
        self._record_bytes = record_bytes
        self._arena = device.arena(MemoryPart.EXPERTS, 0, record_bytes)
        self.tables = {
            layer: SlotTable(device.device, shape.num_experts, policy_factory)
            for layer in shape.moe_layers
        }
        self._seen: dict[int, dict[int, int]] = {layer: {} for layer in shape.moe_layers}
        self._wanted: dict[int, dict[int, bool]] = {}
        self._uploads: list[Upload] = []
        self._now = 0
        self.grow(shape.above_per_layer)

    @property
    def device(self) -> Device:
        """The device that holds them."""
        return self._device

    @property
    def slots_per_layer(self) -> tuple[int, ...]:
        """Device slots of each MoE layer."""
        return tuple(table.num_slots for table in self.tables.values())

    def experts(self, layer: int) -> list[int]:
        """Return the experts of a layer that lie on the device."""
        table = self.tables[layer]
        return [expert for expert in range(len(table.slot_of)) if expert in table]

    def note(self, layer: int, hits: Sequence[int], others: Iterable[int]) -> None:
        """Note what a computation found on the device and what it did not."""
        table, seen, now = self.tables[layer], self._seen[layer], self._now
        table.touch(hits, now)
        if not table.num_slots:
            return
        for expert in others:
            before = seen.get(expert)
            seen[expert] = now
            is_recent = before is not None and before < now and now - before <= RECENT_STEPS
            if is_recent or table.num_free:
                wanted = self._wanted.setdefault(layer, {})
                wanted[expert] = is_recent

    def take_wanted(self, in_ram: Mapping[int, Container[int]]) -> list[tuple[int, int]]:
        """Begin a step; return the candidates (layer, expert) that were chosen, and forget all.

        Only what still lies in RAM can be uploaded.
        """
        self._now += 1
        chosen: list[tuple[int, int]] = []
        for layer, wanted in self._wanted.items():
            num_free = self.tables[layer].num_free
            here = [expert for expert in wanted if expert in in_ram[layer]]
            first = sorted(here, key=lambda expert: not wanted[expert])
            allowed = [
                expert for place, expert in enumerate(first) if wanted[expert] or place < num_free
            ]
            num_coming = sum(each.layer == layer for each in self._uploads)
            num_more = max(0, MAX_UPLOADS_PER_LAYER - num_coming)
            chosen += [(layer, expert) for expert in allowed[:num_more]]
        self._wanted.clear()
        return chosen

    def upload(self, layer: int, expert: int, source: Slot) -> int | None:
        """Begin to copy an expert from a RAM slot that stays as it is until it is published.

        Returns the expert that left for it, ``NOWHERE`` if none had to, None if nothing begins.
        """
        table = self.tables[layer]
        if table.slot_of[expert] != NOWHERE or self._is_coming(layer, expert):
            return None
        left = NOWHERE
        slot = table.take()
        if slot is None:
            victim = table.victim(self._now)
            if victim is None:
                return None
            slot, left = table.evict(victim), victim
        event = self._device.copy(source.bytes(), self._arena.tensor(slot))
        self._uploads.append(Upload(layer, expert, slot, event))
        return left

    def wait_copied(self, layer: int) -> list[int]:
        """Wait until uploads of a layer have left RAM; return their experts, not published yet."""
        waiting = [upload for upload in self._uploads if upload.layer == layer]
        for upload in waiting:
            upload.event.wait()
        return [upload.expert for upload in waiting]

    def publish(self, *, is_waiting: bool = False) -> list[tuple[int, int]]:
        """Publish uploads that have ended, all if waiting; return them as (layer, expert)."""
        if not self._uploads:
            return []
        published: list[tuple[int, int]] = []
        left: list[Upload] = []
        for upload in self._uploads:
            if not (is_waiting or upload.event.is_done):
                left.append(upload)
                continue
            upload.event.wait()
            self.tables[upload.layer].fill(upload.slot, upload.expert, self._now)
            published.append((upload.layer, upload.expert))
        self._uploads = left
        return published

    def shrink(self, slots_per_layer: Sequence[int]) -> list[tuple[int, int]]:
        """Drop slots of layers that have more; return the experts (layer, expert) that left.

        Nothing may be locked or on its way.
        """
        self._device.synchronize()
        left: list[tuple[int, int]] = []
        for (layer, table), wanted in zip(self.tables.items(), slots_per_layer, strict=True):
            while table.num_slots > wanted:
                slot = table.take()
                if slot is None:
                    victim = table.victim(self._now)
                    assert victim is not None, "a device slot is locked between two steps"
                    slot = table.evict(victim)
                    left.append((layer, victim))
                table.drop_slot(slot)
                self._arena.drop(slot)
        return left

    def grow(self, slots_per_layer: Sequence[int]) -> None:
        """Add slots to layers that have fewer."""
        for table, wanted in zip(self.tables.values(), slots_per_layer, strict=True):
            while table.num_slots < wanted:
                slot = self._arena.add()
                bytes_there = self._arena.tensor(slot)
                table.add_slot(slot, Slot.from_buffer(bytes_there, self._device.device))

    def close(self) -> None:
        """Wait for what is on its way and give the slots back; may be called twice."""
        for upload in self._uploads:
            upload.event.wait()
        self._uploads.clear()
        self.tables.clear()
        self._arena.close()

    def check(self) -> None:
        """Assert that slot tables and the arena are sound."""
        self._arena.check()
        for table in self.tables.values():
            table.check()
        assert sum(self.slots_per_layer) == self._arena.num_slots

    def _is_coming(self, layer: int, expert: int) -> bool:
        """Whether an expert is on its way."""
        return any(each.layer == layer and each.expert == expert for each in self._uploads)
