"""Experts in RAM slots, read from the store on demand and in the background."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence

from runtime.kernels.matrix import Slot
from runtime.memory.large_pages import gather
from runtime.memory.ledger import Ledger
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, PolicyKind
from runtime.residency.books import Books, FillProgress
from runtime.residency.demand import Demand
from runtime.residency.depth import DepthCurve
from runtime.residency.filling import Arrival, Filling, Wanted
from runtime.residency.hints import Hints
from runtime.residency.lanes import MAX_DEMAND_READERS, ReadLanes
from runtime.residency.residents import RamResidents
from runtime.residency.shape import CacheShape
from runtime.residency.sizes import SlotSizes
from runtime.spec.tensors import ExpertId
from runtime.store.base import ExpertStore
from runtime.telemetry.expert_tally import IN_RAM

_LOG = logging.getLogger(__name__)
Clock = Callable[[], float]
Pairs = list[tuple[int, Slot]]
_READS_PER_BATCH = MAX_DEMAND_READERS


class RamExperts:
    """Brings experts into RAM: what a step needs at once, and others in the background.

    Whoever the policy does not let in is computed from a free slot and forgotten.

    Threads: used by the engine thread; readers fill slots that were set aside for them.
    """

    def __init__(
        self,
        store: ExpertStore,
        shape: CacheShape,
        ledger: Ledger,
        books: Books,
        kind: PolicyKind = POLICIES[DEFAULT_POLICY],
        clock: Clock = time.perf_counter,
    ) -> None:
        self._books = books
        self._clock = clock
        self.sizes = SlotSizes(store, shape)
        self._moe_layers = shape.moe_layers
        self.residents = RamResidents(shape, ledger, self.sizes, kind, books.tally)
        self.residents.call_off = self._call_off
        self.places = self.residents.places
        self._lanes = ReadLanes(store, books.stalled)
        self.hints = Hints(self._lanes, self.places, books.counters, self.residents.spare)
        self._filling = Filling(self._lanes, self._note_arrival, self._end_filling)
        self._num_readers: int | None = None
        self._engine_thread = threading.get_ident()
        self._is_open = True

    def fix_readers(self, number: int) -> None:
        """Let so many read what a computation waits for, whatever the drive likes best."""
        self._num_readers = self._lanes.num_readers = number

    def fill(self, num_per_layer: int, progress: FillProgress) -> None:
        """Read up to so many experts of each layer and wait for them.

        Batches are read with more and fewer readers in turn; what the drive likes best stays.
        """
        self.hints.withdraw()
        work: list[ExpertId] = []
        for layer in self._moe_layers:
            number = min(num_per_layer, self.residents.num_free(layer))
            work += [ExpertId(layer, expert) for expert in self.residents.absent(layer)[:number]]
        total_bytes, done_bytes = self._bytes_of(work), 0
        curve = DepthCurve()
        progress(0, total_bytes)
        for first in range(0, len(work), _READS_PER_BATCH):
            batch = work[first : first + _READS_PER_BATCH]
            depth = self._lanes.num_readers = self._num_readers or curve.next_depth
            started_s = self._clock()
            self._read(batch)
            if self._num_readers is None and len(batch) == _READS_PER_BATCH:
                curve.note(depth, self._bytes_of(batch), self._clock() - started_s)
            done_bytes += self._bytes_of(batch)
            progress(done_bytes, total_bytes)
        self._lanes.num_readers = self._num_readers or curve.best_depth
        _LOG.info("demands are read by %d readers", self._lanes.num_readers)

    def fill_behind(self) -> None:
        """Let experts be read into free slots of all layers in the background, most used first."""
        self.hints.withdraw()
        wanted: list[Wanted] = []
        for layer in self._moe_layers:
            experts = self.residents.absent(layer)[: self.residents.num_free(layer)]
            for expert, slot in zip(experts, self.residents.reserve(layer, experts), strict=True):
                wanted.append(Wanted(ExpertId(layer, expert), slot, self.places.view(slot)))
        self._filling.start(wanted)

    def wait_filled(self, timeout_s: float) -> bool:
        """Wait until nothing is read in the background; return whether that was in time."""
        return self._filling.wait(timeout_s)

    @property
    def takes_guesses(self) -> bool:
        """Whether guesses could be of use: something is absent and nothing is being loaded."""
        return not self.residents.holds_all and not self._filling.is_busy

    def guess(self, layer: int, experts: Sequence[int]) -> None:
        """Expect a layer to ask for experts, the surest first."""
        slot_of, above = self.places.slot_of[layer], self.residents.above.get(layer, ())
        resident = [expert for expert in experts if expert in slot_of or expert in above]
        self.hints.guess(layer, experts, resident)

    def take_in(self) -> None:
        """Publish what has arrived."""
        if self._filling.is_busy:
            for layer in self._filling.layers():
                self._take_in(layer, self._filling.collect(layer))

    def runs(
        self, layer: int, experts: Sequence[int], on_device: Mapping[int, Slot]
    ) -> Generator[Pairs, None, None]:
        """Yield the experts with their slots, in their order, in runs that can be computed now.

        All misses are requested before the first run, as far as slots are free. A run is used until
        the next is asked for. ``on_device`` are those that lie there. Raises ``LarderError`` if the
        drive fails. The iterator must be closed.
        """
        slot_of, slots = self.places.slot_of[layer], self.places.slots
        asked = [expert for expert in experts if expert not in on_device] if on_device else experts
        missing = [expert for expert in asked if expert not in slot_of]
        if missing and self._filling.is_busy:
            came = self._claim(layer, missing)
            missing = [expert for expert in missing if expert not in slot_of]
        else:
            came = []
        self._count(layer, asked, [*missing, *came])
        ready = (
            [(expert, on_device.get(expert) or slots[slot_of[expert]]) for expert in experts]
            if not missing
            else None
        )
        if ready is not None and self.residents.holds_all:
            yield ready
            return
        try:
            if ready is not None:
                self.residents.begin(layer, asked)
                self.hints.claim(layer, ())
                yield ready
            else:
                yield from self._runs_of_misses(layer, experts, asked, missing, on_device)
        finally:
            self.residents.end(layer, is_changed=bool(missing))
            self.hints.begin()

    def close(self) -> None:
        """End the readers and give the memory back; may be called twice."""
        self._is_open = False
        self.hints.withdraw()
        self._lanes.close()
        self.residents.close()

    def check(self) -> None:
        """Assert that slots, places and tiers are sound."""
        self.residents.check(self._filling.of_layer)

    def _end_filling(self, num_read: int, seconds: float) -> None:
        """Tell it; whoever read last sees to it that experts lie in large pages."""
        self._books.fill_ended(num_read, seconds)
        if num_read and threading.get_ident() != self._engine_thread:
            gather(self.places.spans(), lambda: self._is_open)

    def _runs_of_misses(
        self,
        layer: int,
        experts: Sequence[int],
        asked: Sequence[int],
        missing: Sequence[int],
        on_device: Mapping[int, Slot],
    ) -> Generator[Pairs, None, None]:
        """Yield runs while the missing experts arrive."""
        slot_of, slots = self.places.slot_of[layer], self.places.slots
        locked: Collection[int] = frozenset(experts)

        def take_back(expert: int, slot: int, is_good: bool) -> None:
            if is_good:
                self.residents.admit(layer, expert, slot, locked)
            else:
                self.places.give_back(slot)

        absent = frozenset(missing)
        run: Pairs = []
        guessed = self.hints.claim(layer, missing)
        demand = Demand(layer, missing, self._lanes, self.places, take_back, guessed)
        try:
            # The drive reads meanwhile.
            self.residents.begin(layer, asked)
            for expert in experts:
                if expert in absent:
                    if run and (demand.is_due or not demand.is_there(expert)):
                        yield run
                        run = []
                        if demand.is_short:
                            demand.settle()
                    run.append((expert, slots[self._wait(demand, expert)]))
                else:
                    run.append((expert, on_device.get(expert) or slots[slot_of[expert]]))
            yield run
        finally:
            # Everything is computed, so whoever is worth least may leave.
            locked = ()
            demand.close()

    def _wait(self, demand: Demand, expert: int) -> int:
        """Take an expert that was requested, counting the wait for the drive."""
        started_s = self._clock()
        try:
            return demand.take(expert)
        finally:
            self._books.counters.drive_wait_s += self._clock() - started_s

    def _bytes_of(self, experts: Sequence[ExpertId]) -> int:
        """Return what the records of some experts take."""
        return sum(self.sizes.of(each.layer, each.expert) for each in experts)

    def _count(self, layer: int, asked: Sequence[int], missing: Sequence[int]) -> None:
        """Count what a step found in RAM and what it did not."""
        counters = self._books.counters
        asked_bytes, missing_bytes = self.sizes.sum(layer, asked), self.sizes.sum(layer, missing)
        counters.expert_hits += len(asked) - len(missing)
        counters.expert_hit_bytes += asked_bytes - missing_bytes
        counters.expert_misses += len(missing)
        counters.expert_miss_bytes += missing_bytes
        counters.ram_bytes_read += asked_bytes

    def _claim(self, layer: int, missing: Sequence[int]) -> list[int]:
        """Publish what has arrived, and wait for what is being read of missing experts.

        Those whose turn had not come lose their place. Returns those that were waited for.
        """
        self._take_in(layer, self._filling.collect(layer))
        arriving = self._filling.of_layer(layer)
        awaited: list[int] = []
        for expert in [expert for expert in missing if expert in arriving]:
            started_s = self._clock()
            arrival = self._filling.claim(ExpertId(layer, expert))
            self._books.counters.drive_wait_s += self._clock() - started_s
            self._take_in(layer, [arrival])
            if arrival.is_good:
                awaited.append(expert)
        return awaited

    def _call_off(self, layer: int, expert: int) -> int:
        """End or forget the read of an expert in the background and return its slot."""
        return self._filling.claim(ExpertId(layer, expert)).wanted.slot

    def _read(self, batch: Sequence[ExpertId]) -> None:
        """Read experts into free slots and wait for them; raise what went wrong first."""
        slots = [
            slot
            for expert in batch
            for slot in self.residents.reserve(expert.layer, [expert.expert])
        ]
        views = [self.places.view(slot) for slot in slots]
        reads = self._lanes.demand(list(zip(batch, views, strict=True)))
        errors = [reads.wait(number) for number in range(len(batch))]
        for expert, slot, error in zip(batch, slots, errors, strict=True):
            if error is None:
                self.residents.arrive(expert.layer, expert.expert, slot)
            else:
                self.residents.forget(expert.layer, expert.expert, slot)
        for error in errors:
            if error is not None:
                raise error

    def _take_in(self, layer: int, arrivals: Sequence[Arrival]) -> None:
        """Publish experts that were read in the background."""
        for arrival in arrivals:
            expert, slot = arrival.wanted.expert.expert, arrival.wanted.slot
            if arrival.is_good:
                self.residents.arrive(layer, expert, slot)
            else:
                self.residents.forget(layer, expert, slot)

    def _note_arrival(self, expert: ExpertId) -> None:
        """Show an expert in RAM as soon as it was read; called by readers."""
        above = self.residents.above.get(expert.layer)
        if above is None or expert.expert not in above:
            tally = self._books.tally
            tally.tiers[self.residents.first_of(expert.layer) + expert.expert] = IN_RAM
