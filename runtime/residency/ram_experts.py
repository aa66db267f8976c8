"""Experts in RAM slots, read from the store on demand and in the background."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

from runtime.errors import LarderError
from runtime.kernels.matrix import Slot
from runtime.memory.ledger import Ledger
from runtime.memory.slot_arena import SlotArena
from runtime.policy.base import PolicyFactory
from runtime.policy.lru import LruPolicy
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.residency.filling import Arrival, FillEnded, Filling, Wanted
from runtime.residency.lanes import ReadLanes
from runtime.residency.shape import CacheShape
from runtime.residency.slots import CPU, NOWHERE, SlotTable
from runtime.spec.tensors import ExpertId
from runtime.store.base import ExpertStore
from runtime.telemetry.expert_tally import IN_RAM, IN_VRAM, ON_DRIVE, ExpertTally
from runtime.telemetry.recorder import Counters

Clock = Callable[[], float]
FillProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in total; may raise to stop."""
WaitCopied = Callable[[int], Sequence[int]]
"""Waits for copies of a layer's experts to the device and returns these experts."""
_READS_PER_BATCH = 8


def _nothing_copied(layer: int) -> Sequence[int]:
    """Return that nothing is copied where there is no device."""
    del layer
    return ()


def _ignore_end(num_experts: int, seconds: float) -> None:
    """Take the end of a filling and do nothing with it."""
    del num_experts, seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Books:
    """Where an expert cache writes down what it does."""

    counters: Counters
    tally: ExpertTally
    fill_ended: FillEnded = _ignore_end


class RamExperts:
    """Slots of all layers in RAM, and everything that brings experts into them.

    Threads: used by the engine thread; readers fill slots that were set aside for them.
    """

    def __init__(
        self,
        store: ExpertStore,
        shape: CacheShape,
        ledger: Ledger,
        books: Books,
        policy_factory: PolicyFactory = LruPolicy,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._books = books
        self._clock = clock
        self._record_bytes = store.layout.record_bytes
        self._now = 0
        self._copy_wait_s = 0.0
        """Waited until copies to the device had left RAM; no wait for the drive."""
        self._arena = SlotArena(ledger, MemoryPart.EXPERTS, self._record_bytes)
        self.tables = {
            layer: SlotTable(CPU, shape.num_experts, policy_factory) for layer in shape.moe_layers
        }
        self.above: Mapping[int, SlotTable] = {}
        """Tables of the device, whose experts leave RAM first."""
        self.wait_copied: WaitCopied = _nothing_copied
        self.first_of = {
            layer: position * shape.num_experts for position, layer in enumerate(shape.moe_layers)
        }
        """Number of each layer's first expert in the tally."""
        self._lanes = ReadLanes(store)
        self._filling = Filling(self._lanes, self._note_arrival, books.fill_ended)
        try:
            self.grow(shape.slots_per_layer)
        except LarderError:
            self.close()
            raise

    @property
    def slots_per_layer(self) -> tuple[int, ...]:
        """RAM slots of each MoE layer."""
        return tuple(table.num_slots for table in self.tables.values())

    def fill(self, num_per_layer: int, progress: FillProgress) -> None:
        """Read up to so many experts of each layer, lowest numbers first, and wait for them."""
        work: list[tuple[int, int]] = []
        for layer, table in self.tables.items():
            number = min(num_per_layer, table.num_free)
            work += [(layer, expert) for expert in self._absent(layer)[:number]]
        total_bytes = len(work) * self._record_bytes
        progress(0, total_bytes)
        for first in range(0, len(work), _READS_PER_BATCH):
            batch = work[first : first + _READS_PER_BATCH]
            self._read([(layer, expert, self._make_room(layer)) for layer, expert in batch])
            progress((first + len(batch)) * self._record_bytes, total_bytes)

    def fill_behind(self) -> None:
        """Let experts be read into all free slots in the background, the most used first."""
        wanted: list[Wanted] = []
        for layer, table in self.tables.items():
            for expert in self._absent(layer)[: table.num_free]:
                slot = table.take()
                assert slot is not None, "no more experts than free slots"
                wanted.append(Wanted(ExpertId(layer, expert), slot, self._arena.view(slot)))
        self._filling.start(wanted)

    def wait_filled(self, timeout_s: float) -> bool:
        """Wait until nothing is read in the background; return whether that was in time."""
        return self._filling.wait(timeout_s)

    def take_in(self) -> None:
        """Publish what has arrived."""
        if self._filling.is_busy:
            for layer in self._filling.layers():
                self._take_in(layer, self._filling.collect(layer))

    def acquire(self, layer: int, experts: Sequence[int]) -> list[Slot]:
        """Make distinct experts resident, lock them, and return their slots in the same order.

        All misses are requested at once. Raises ``LarderError`` if the drive fails; nothing is
        locked then.
        """
        table = self.tables[layer]
        if len(experts) > table.num_slots:
            raise ValueError(f"{len(experts)} experts for {table.num_slots} slots")
        slot_of = table.slot_of
        self._now += 1
        table.lock(experts)
        missing = [expert for expert in experts if slot_of[expert] == NOWHERE]
        if missing and self._filling.is_busy:
            self._take_in(layer, self._filling.collect(layer))
            missing = [expert for expert in experts if slot_of[expert] == NOWHERE]
        if missing:
            self._admit(layer, experts, missing)
        else:
            table.touch(experts, self._now)
        num_hits = len(experts) - len(missing)
        counters = self._books.counters
        counters.expert_hits += num_hits
        counters.expert_hit_bytes += num_hits * self._record_bytes
        counters.ram_bytes_read += len(experts) * self._record_bytes
        slots = table.slots
        return [slots[slot_of[expert]] for expert in experts]

    def shrink(self, slots_per_layer: Sequence[int]) -> None:
        """Drop slots of layers that have more than this; their memory is given back."""
        for (layer, table), wanted in zip(self.tables.items(), slots_per_layer, strict=True):
            while table.num_slots > wanted:
                slot = self._make_room(layer)
                table.drop_slot(slot)
                self._arena.drop(slot)

    def grow(self, slots_per_layer: Sequence[int]) -> None:
        """Add slots to layers that have fewer than this."""
        for table, wanted in zip(self.tables.values(), slots_per_layer, strict=True):
            while table.num_slots < wanted:
                slot = self._arena.add()
                table.add_slot(slot, Slot.from_buffer(self._arena.view(slot)))

    def show(self, layer: int, expert: int) -> None:
        """Write down in which tier an expert lies now."""
        is_above = bool(self.above) and expert in self.above[layer]
        tier = IN_VRAM if is_above else IN_RAM if expert in self.tables[layer] else ON_DRIVE
        self._books.tally.tiers[self.first_of[layer] + expert] = tier

    def close(self) -> None:
        """End the readers and give the memory back; may be called twice."""
        self._lanes.close()
        self.tables.clear()
        self._arena.close()

    def check(self) -> None:
        """Assert that slot tables, tiers and the arena are sound."""
        self._arena.check()
        tiers = self._books.tally.tiers
        for layer, table in self.tables.items():
            table.check()
            arriving = self._filling.of_layer(layer)
            for expert in range(len(table.slot_of)):
                shown = tiers[self.first_of[layer] + expert]
                self.show(layer, expert)
                assert expert in arriving or shown == tiers[self.first_of[layer] + expert]
        assert sum(self.slots_per_layer) == self._arena.num_slots

    def _absent(self, layer: int) -> list[int]:
        """Return the experts that are neither here nor on their way, the most wanted first.

        These are the most used ones, those that the device holds last.
        """
        table, above = self.tables[layer], self.above.get(layer)
        first, uses = self.first_of[layer], self._books.tally.uses
        arriving = self._filling.of_layer(layer)
        absent = [
            expert
            for expert, slot in enumerate(table.slot_of)
            if slot == NOWHERE and expert not in arriving
        ]
        return sorted(
            absent,
            key=lambda expert: (above is not None and expert in above, -uses[first + expert]),
        )

    def _admit(self, layer: int, experts: Sequence[int], missing: Sequence[int]) -> None:
        """Read the missing ones of ``experts`` and count the wait for the drive."""
        table = self.tables[layer]
        absent = set(missing)
        table.touch((expert for expert in experts if expert not in absent), self._now)
        counters = self._books.counters
        is_read = False
        copied_s = self._copy_wait_s
        started_s = self._clock()
        try:
            self._read([work for expert in missing if (work := self._claim(layer, expert))])
            is_read = True
        finally:
            copied_s = self._copy_wait_s - copied_s
            counters.drive_wait_s += self._clock() - started_s - copied_s
            if not is_read:
                table.unlock(experts)
        counters.expert_misses += len(missing)
        counters.expert_miss_bytes += len(missing) * self._record_bytes

    def _claim(self, layer: int, expert: int) -> tuple[int, int, int] | None:
        """Return the read (layer, expert, slot) that makes an expert resident, None if it is."""
        if expert in self.tables[layer]:
            # It came while room was made for another.
            return None
        if self._filling.is_busy:
            arrival = self._filling.claim(ExpertId(layer, expert))
            if arrival is not None and arrival.outcome.cancelled():
                return layer, expert, arrival.wanted.slot
            if arrival is not None:
                self._take_in(layer, [arrival])
                if arrival.is_good:
                    return None
        return layer, expert, self._make_room(layer)

    def _make_room(self, layer: int) -> int:
        """Borrow a slot: a free one, one whose expert was not read yet, or the victim's."""
        slot = self._room_now(layer)
        if slot is None and self._filling.is_busy:
            # All others are being read into; the first that ends makes room.
            self._take_in(layer, self._filling.drain(layer))
            slot = self._room_now(layer)
        if slot is None:
            started_s = self._clock()
            for expert in self.wait_copied(layer):
                self.tables[layer].let_go(expert)
            self._copy_wait_s += self._clock() - started_s
            slot = self._room_now(layer)
        if slot is None:
            raise LarderError(ErrorCode.INTERNAL, detail=f"all slots of layer {layer} are in use")
        return slot

    def _room_now(self, layer: int) -> int | None:
        """Borrow a slot without waiting, None if each is in use or being read into."""
        table = self.tables[layer]
        slot = table.take()
        if slot is None and self._filling.is_busy:
            slot = self._filling.steal(layer)
        if slot is not None:
            return slot
        victim = table.victim(self._now, self.above[layer]) if self.above else None
        if victim is None:
            victim = table.victim(self._now)
        if victim is None:
            return None
        slot = table.evict(victim)
        self.show(layer, victim)
        return slot

    def _read(self, work: Sequence[tuple[int, int, int]]) -> None:
        """Fill slots (layer, expert, slot), several at once; give up slots whose read failed."""
        if not work:
            return
        first_error: LarderError | None = None
        reads = [(ExpertId(layer, expert), self._arena.view(slot)) for layer, expert, slot in work]
        with contextlib.ExitStack() as undo:
            for layer, _, slot in work:
                undo.callback(self.tables[layer].give_up, slot)
            errors = self._lanes.demand(reads)
            undo.pop_all()
        for (layer, expert, slot), error in zip(work, errors, strict=True):
            if error is None:
                self.tables[layer].fill(slot, expert, self._now)
                self.show(layer, expert)
            else:
                self.tables[layer].give_up(slot)
                first_error = first_error or error
        if first_error is not None:
            raise first_error

    def _take_in(self, layer: int, arrivals: Sequence[Arrival]) -> None:
        """Publish experts that were read in the background."""
        table = self.tables[layer]
        for arrival in arrivals:
            expert = arrival.wanted.expert.expert
            if arrival.is_good:
                table.fill(arrival.wanted.slot, expert, self._now)
                self.show(layer, expert)
            else:
                table.give_up(arrival.wanted.slot)

    def _note_arrival(self, expert: ExpertId) -> None:
        """Show an expert in RAM as soon as it was read; called by readers."""
        above = self.above.get(expert.layer)
        if above is None or expert.expert not in above:
            self._books.tally.tiers[self.first_of[expert.layer] + expert.expert] = IN_RAM
