"""The expert cache: experts of all layers in RAM slots, read from the store on demand."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from runtime.errors import LarderError
from runtime.kernels.matrix import Slot
from runtime.memory.arena import Arena
from runtime.memory.ledger import Ledger
from runtime.policy.base import PolicyFactory
from runtime.policy.lru import LruPolicy
from runtime.protocol.plan import MemoryPart
from runtime.residency.slots import CPU, NOWHERE, SlotKey, SlotTable
from runtime.spec.tensors import ExpertId, ExpertLayout
from runtime.store.base import ExpertStore
from runtime.telemetry.recorder import Counters

NUM_READERS = 4
"""Reads in flight at the same time."""

Clock = Callable[[], float]
FillProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in total; may raise to stop."""


@dataclasses.dataclass(frozen=True, slots=True)
class CacheShape:
    """How many slots each MoE layer has, and how many experts compete for them."""

    moe_layers: tuple[int, ...]
    slots_per_layer: tuple[int, ...]
    """In the order of ``moe_layers``, each at least the top-k."""
    num_experts: int

    def __post_init__(self) -> None:
        if len(self.moe_layers) != len(self.slots_per_layer):
            raise ValueError("one number of slots for each MoE layer")
        if any(not 0 < slots <= self.num_experts for slots in self.slots_per_layer):
            raise ValueError(f"slots from 1 to {self.num_experts}: {self.slots_per_layer}")


class ExpertCache:
    """Makes experts resident: slots in one arena of the CPU, misses read from the store.

    What is resident changes how long an answer takes and never what it says.

    Threads: used by the engine thread; its readers fill slots that it handed to them.
    """

    def __init__(
        self,
        store: ExpertStore,
        shape: CacheShape,
        ledger: Ledger,
        counters: Counters,
        policy_factory: PolicyFactory = LruPolicy,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._store = store
        self._shape = shape
        self._counters = counters
        self._clock = clock
        self._layout = store.layout
        self._record_bytes = store.layout.record_bytes
        self._now = 0
        self._arena = Arena(
            ledger, MemoryPart.EXPERTS, sum(shape.slots_per_layer), self._record_bytes
        )
        self._tables: dict[int, SlotTable] = {}
        self._targets: dict[int, list[memoryview]] = {}
        first = 0
        for layer, num_slots in zip(shape.moe_layers, shape.slots_per_layer, strict=True):
            targets = [self._arena.slot(first + index) for index in range(num_slots)]
            slots = [Slot.from_buffer(target) for target in targets]
            self._targets[layer] = targets
            self._tables[layer] = SlotTable(
                shape.num_experts, slots, SlotKey(CPU, first), policy_factory(num_slots)
            )
            first += num_slots
        self._readers = ThreadPoolExecutor(NUM_READERS, thread_name_prefix="expert-reader")

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in its slot."""
        return self._layout

    @property
    def num_resident(self) -> int:
        """Experts that are resident now."""
        return sum(table.num_resident for table in self._tables.values())

    def num_slots(self, layer: int) -> int:
        """Return how many experts of a layer can be acquired at the same time."""
        return self._tables[layer].num_slots

    def find(self, expert: ExpertId) -> SlotKey | None:
        """Return where an expert lies, or None if it is not resident."""
        return self._tables[expert.layer].key(expert.expert)

    def fill(self, progress: FillProgress) -> None:
        """Read experts into all free slots, layer by layer and lowest numbers first."""
        work: list[tuple[int, int]] = []
        for layer, table in self._tables.items():
            absent = (e for e, slot in enumerate(table.slot_of) if slot == NOWHERE)
            num_free = table.num_slots - table.num_resident
            work += [(layer, expert) for expert in itertools.islice(absent, num_free)]
        total_bytes = len(work) * self._record_bytes
        progress(0, total_bytes)
        for first in range(0, len(work), 2 * NUM_READERS):
            batch = work[first : first + 2 * NUM_READERS]
            self._read(
                [(layer, expert, self._tables[layer].make_room(0)) for layer, expert in batch]
            )
            progress((first + len(batch)) * self._record_bytes, total_bytes)

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
        table.lock(experts)
        missing = [expert for expert in experts if slot_of[expert] == NOWHERE]
        if missing:
            self._admit(layer, table, experts, missing)
        else:
            table.touch(experts, self._now)
        num_hits = len(experts) - len(missing)
        counters = self._counters
        counters.expert_hits += num_hits
        counters.expert_hit_bytes += num_hits * self._record_bytes
        slots = table.slots
        return [slots[slot_of[expert]] for expert in experts]

    def release(self, layer: int, experts: Sequence[int]) -> None:
        """Unlock experts that were acquired; their slots may be reused from now on."""
        self._tables[layer].unlock(experts)

    def close(self) -> None:
        """End the readers and give the memory back; may be called twice."""
        self._readers.shutdown(wait=True)
        self._tables.clear()
        self._targets.clear()
        self._arena.close()

    def check(self) -> None:
        """Assert that slot tables and the arena are sound."""
        self._arena.check()
        for table in self._tables.values():
            table.check()

    def _admit(
        self, layer: int, table: SlotTable, experts: Sequence[int], missing: Sequence[int]
    ) -> None:
        """Read the missing ones of ``experts`` and count the stall."""
        absent = set(missing)
        table.touch((expert for expert in experts if expert not in absent), self._now)
        counters = self._counters
        is_read = False
        started_s = self._clock()
        try:
            self._read([(layer, expert, table.make_room(self._now)) for expert in missing])
            is_read = True
        finally:
            counters.drive_wait_s += self._clock() - started_s
            if not is_read:
                table.unlock(experts)
        counters.expert_misses += len(missing)
        counters.expert_miss_bytes += len(missing) * self._record_bytes

    def _read(self, work: Sequence[tuple[int, int, int]]) -> None:
        """Fill slots (layer, expert, slot), several at once; give up slots whose read failed."""
        before_bytes = self._store.num_bytes_read
        futures: list[Future[None]] = []
        if len(work) > 1:
            futures = [
                self._readers.submit(
                    self._store.read_expert, ExpertId(layer, expert), self._targets[layer][slot]
                )
                for layer, expert, slot in work
            ]
            wait(futures)
        first_error: LarderError | None = None
        for index, (layer, expert, slot) in enumerate(work):
            table = self._tables[layer]
            try:
                if futures:
                    futures[index].result()
                else:
                    self._store.read_expert(ExpertId(layer, expert), self._targets[layer][slot])
            except LarderError as error:
                table.give_up(slot)
                first_error = first_error or error
            else:
                table.fill(slot, expert, self._now)
        self._counters.drive_bytes_read += self._store.num_bytes_read - before_bytes
        if first_error is not None:
            raise first_error
