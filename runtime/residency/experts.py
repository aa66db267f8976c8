"""The expert cache: experts of all layers in slots, read from the store on demand."""

import dataclasses
import time
from collections.abc import Callable, Sequence

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
from runtime.residency.slots import CPU, NOWHERE, SlotKey, SlotTable
from runtime.spec.tensors import ExpertId, ExpertLayout
from runtime.store.base import ExpertStore
from runtime.telemetry.expert_tally import IN_RAM, ON_DRIVE, ExpertTally
from runtime.telemetry.recorder import Counters

Clock = Callable[[], float]
FillProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in total; may raise to stop."""


def _ignore_end(num_experts: int, seconds: float) -> None:
    """Take the end of a filling and do nothing with it."""
    del num_experts, seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Books:
    """Where an expert cache writes down what it does."""

    counters: Counters
    tally: ExpertTally
    fill_ended: FillEnded = _ignore_end


class ExpertCache:
    """Makes experts resident: slots in RAM, misses read from the store.

    What is resident changes how long an answer takes and never what it says. The number of slots
    of a layer may change between two computations.

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
        self._store = store
        self._ledger = ledger
        self._counters = books.counters
        self._tally = books.tally
        self._clock = clock
        self._layout = store.layout
        self._record_bytes = store.layout.record_bytes
        self._now = 0
        self._num_experts = shape.num_experts
        self._arena = SlotArena(ledger, MemoryPart.EXPERTS, self._record_bytes)
        self._tables = {
            layer: SlotTable(CPU, shape.num_experts, policy_factory) for layer in shape.moe_layers
        }
        self._first_of = {
            layer: position * shape.num_experts for position, layer in enumerate(shape.moe_layers)
        }
        self._lanes = ReadLanes(store)
        self._filling = Filling(self._lanes, self._note_arrival, books.fill_ended)
        try:
            self._grow(shape.slots_per_layer)
        except LarderError:
            self.close()
            raise

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in its slot."""
        return self._layout

    @property
    def num_resident(self) -> int:
        """Experts that are resident now; what is on its way is not counted."""
        return sum(table.num_resident for table in self._tables.values())

    @property
    def slots_per_layer(self) -> tuple[int, ...]:
        """RAM slots of each MoE layer."""
        return tuple(table.num_slots for table in self._tables.values())

    def num_slots(self, layer: int) -> int:
        """Return how many experts of a layer can be acquired at the same time."""
        return self._tables[layer].num_slots

    def find(self, expert: ExpertId) -> SlotKey | None:
        """Return where an expert lies, or None if it is not resident."""
        return self._tables[expert.layer].key(expert.expert)

    def fill(self, num_per_layer: int, progress: FillProgress) -> None:
        """Read up to so many experts of each layer, lowest numbers first, and wait for them."""
        work: list[tuple[int, int]] = []
        for layer, table in self._tables.items():
            number = min(num_per_layer, table.num_free)
            work += [(layer, expert) for expert in self._absent(layer)[:number]]
        total_bytes = len(work) * self._record_bytes
        progress(0, total_bytes)
        for first in range(0, len(work), 8):
            batch = work[first : first + 8]
            self._read([(layer, expert, self._make_room(layer)) for layer, expert in batch])
            progress((first + len(batch)) * self._record_bytes, total_bytes)

    def fill_behind(self) -> None:
        """Let experts be read into all free slots in the background, the most used first."""
        wanted: list[Wanted] = []
        for layer, table in self._tables.items():
            for expert in self._absent(layer)[: table.num_free]:
                slot = table.take()
                assert slot is not None, "no more experts than free slots"
                wanted.append(Wanted(ExpertId(layer, expert), slot, self._arena.view(slot)))
        self._filling.start(wanted)

    def wait_filled(self, timeout_s: float) -> bool:
        """Wait until nothing is read in the background; return whether that was in time."""
        return self._filling.wait(timeout_s)

    def begin_step(self) -> None:
        """Take in what has arrived; called between two steps, when nothing is acquired."""
        if self._filling.is_busy:
            for layer in self._filling.layers():
                self._take_in(layer, self._filling.collect(layer))

    def acquire(self, layer: int, experts: Sequence[int]) -> list[Slot]:
        """Make distinct experts resident, lock them, and return their slots in the same order.

        All misses are requested at once. Raises ``LarderError`` if the drive fails; nothing is
        locked then.
        """
        table = self._tables[layer]
        if len(experts) > table.num_slots:
            raise ValueError(f"{len(experts)} experts for {table.num_slots} slots")
        slot_of = table.slot_of
        self._now += 1
        self._tally.note_uses(self._first_of[layer], experts)
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
        counters = self._counters
        counters.expert_hits += num_hits
        counters.expert_hit_bytes += num_hits * self._record_bytes
        counters.ram_bytes_read += len(experts) * self._record_bytes
        slots = table.slots
        return [slots[slot_of[expert]] for expert in experts]

    def release(self, layer: int, experts: Sequence[int]) -> None:
        """Unlock experts that were acquired; their slots may be reused from now on."""
        self._tables[layer].unlock(experts)

    def resize(self, slots_per_layer: Sequence[int], limit_bytes: int) -> None:
        """Change the number of slots and the limit of the ledger; nothing may be acquired.

        Slots that go give their memory back before others come; free slots are filled in the
        background. If there is not enough memory, numbers and limit stay as they were.
        """
        before, limit_before = self.slots_per_layer, self._ledger.limit_bytes
        self._shrink(slots_per_layer)
        self._ledger.set_limit(limit_bytes)
        is_done = False
        try:
            self._grow(slots_per_layer)
            is_done = True
        finally:
            if not is_done:
                self._shrink(before)
                self._ledger.set_limit(limit_before)
                self._grow(before)
            self.fill_behind()

    def close(self) -> None:
        """End the readers and give the memory back; may be called twice."""
        self._lanes.close()
        self._tables.clear()
        self._arena.close()

    def check(self) -> None:
        """Assert that slot tables, tiers and the arena are sound."""
        self._arena.check()
        for layer, table in self._tables.items():
            table.check()
            first = self._first_of[layer]
            arriving = self._filling.of_layer(layer)
            for expert in range(self._num_experts):
                is_in_ram = self._tally.tiers[first + expert] == IN_RAM
                is_resident = table.slot_of[expert] != NOWHERE
                assert is_in_ram == is_resident or expert in arriving
        assert sum(self.slots_per_layer) == self._arena.num_slots

    def _absent(self, layer: int) -> list[int]:
        """Return the experts that are neither here nor on their way, the most used first."""
        slot_of, first, uses = self._tables[layer].slot_of, self._first_of[layer], self._tally.uses
        arriving = self._filling.of_layer(layer)
        absent = [
            expert
            for expert, slot in enumerate(slot_of)
            if slot == NOWHERE and expert not in arriving
        ]
        return sorted(absent, key=lambda expert: -uses[first + expert])

    def _admit(self, layer: int, experts: Sequence[int], missing: Sequence[int]) -> None:
        """Read the missing ones of ``experts`` and count the stall."""
        table = self._tables[layer]
        absent = set(missing)
        table.touch((expert for expert in experts if expert not in absent), self._now)
        counters = self._counters
        is_read = False
        started_s = self._clock()
        try:
            self._read([work for expert in missing if (work := self._claim(layer, expert))])
            is_read = True
        finally:
            counters.drive_wait_s += self._clock() - started_s
            if not is_read:
                table.unlock(experts)
        counters.expert_misses += len(missing)
        counters.expert_miss_bytes += len(missing) * self._record_bytes

    def _claim(self, layer: int, expert: int) -> tuple[int, int, int] | None:
        """Return the read (layer, expert, slot) that makes an expert resident, None if it is."""
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
            raise LarderError(ErrorCode.INTERNAL, detail=f"all slots of layer {layer} are locked")
        return slot

    def _room_now(self, layer: int) -> int | None:
        """Borrow a slot without waiting, None if each is locked or being read into."""
        table = self._tables[layer]
        slot = table.take()
        if slot is None and self._filling.is_busy:
            slot = self._filling.steal(layer)
        if slot is None and (victim := table.victim(self._now)) is not None:
            slot = table.evict(victim)
            self._tally.tiers[self._first_of[layer] + victim] = ON_DRIVE
        return slot

    def _shrink(self, slots_per_layer: Sequence[int]) -> None:
        """Drop slots of layers that have more than this."""
        for (layer, table), wanted in zip(self._tables.items(), slots_per_layer, strict=True):
            while table.num_slots > wanted:
                slot = self._make_room(layer)
                table.drop_slot(slot)
                self._arena.drop(slot)

    def _grow(self, slots_per_layer: Sequence[int]) -> None:
        """Add slots to layers that have fewer than this."""
        for table, wanted in zip(self._tables.values(), slots_per_layer, strict=True):
            while table.num_slots < wanted:
                slot = self._arena.add()
                table.add_slot(slot, Slot.from_buffer(self._arena.view(slot)))

    def _read(self, work: Sequence[tuple[int, int, int]]) -> None:
        """Fill slots (layer, expert, slot), several at once; give up slots whose read failed."""
        if not work:
            return
        first_error: LarderError | None = None
        errors = self._lanes.demand(
            [(ExpertId(layer, expert), self._arena.view(slot)) for layer, expert, slot in work]
        )
        for (layer, expert, slot), error in zip(work, errors, strict=True):
            if error is None:
                self._tables[layer].fill(slot, expert, self._now)
                self._tally.tiers[self._first_of[layer] + expert] = IN_RAM
            else:
                self._tables[layer].give_up(slot)
                first_error = first_error or error
        if first_error is not None:
            raise first_error

    def _take_in(self, layer: int, arrivals: Sequence[Arrival]) -> None:
        """Publish experts that were read in the background."""
        table = self._tables[layer]
        for arrival in arrivals:
            if arrival.is_good:
                table.fill(arrival.wanted.slot, arrival.wanted.expert.expert, self._now)
            else:
                table.give_up(arrival.wanted.slot)

    def _note_arrival(self, expert: ExpertId) -> None:
        """Show an expert in RAM as soon as it was read; called by readers."""
        self._tally.tiers[self._first_of[expert.layer] + expert.expert] = IN_RAM
