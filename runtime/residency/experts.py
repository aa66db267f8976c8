"""The expert cache: device slots above RAM slots above the store."""

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence

import torch

from runtime.memory.ledger import Ledger
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, PolicyKind
from runtime.residency.books import Books, FillProgress
from runtime.residency.device_experts import DeviceExperts, WantedUpload
from runtime.residency.ram_experts import Clock, Pairs, RamExperts
from runtime.residency.shape import CacheShape
from runtime.residency.slots import CPU, SlotKey
from runtime.residency.trial import HintMode, HintTrial
from runtime.simulate.recorder import RoutingRecorder
from runtime.simulate.reuse import ReuseMeter
from runtime.spec.ram_slots import Records
from runtime.spec.tensors import ExpertId, ExpertLayout
from runtime.store.base import ExpertStore


class ExpertCache:
    """Makes experts resident: those on the device stay there, others come into RAM slots.

    What is resident changes how long an answer takes and, with the processor's kernels, never what
    it says. The number of slots may change between two steps. A step is a token or a chunk of the
    prompt; within it nothing is published on the device.

    Threads: used by the engine thread.
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
        self._layout = store.layout
        self._ledger = ledger
        self._counters = books.counters
        self._tally = books.tally
        self._ram = RamExperts(store, shape, ledger, books, kind, clock)
        self._above: DeviceExperts | None = None
        self.recorder: RoutingRecorder | None = None
        """Writes down which experts are chosen, where a person asked for it."""
        self.reuse: ReuseMeter | None = None
        """Counts how recently they were used before, where that is kept for later plans."""
        self._trial = HintTrial(HintMode.MEASURED)
        self._clock = clock
        self._begun_s: float | None = None
        self._is_one_token = False
        self._num_rows = 1

    def fix_readers(self, number: int) -> None:
        """Let so many read what a computation waits for, as a person states it."""
        self._ram.fix_readers(number)

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in its slot, or the largest ones."""
        return self._layout

    @property
    def records(self) -> Records:
        """What the records of all experts take."""
        return self._ram.sizes.records

    @property
    def mean_bits(self) -> float:
        """Bits of a weight in the mean, scales included; 0 where all have one format."""
        return self._ram.sizes.mean_bits

    def ordered(self, layer: int, experts: Sequence[int]) -> Sequence[int]:
        """Return experts, given in ascending order, in that of their formats first."""
        return self._ram.sizes.ordered(layer, experts)

    def layout_of(self, layer: int, expert: int) -> ExpertLayout:
        """How one expert lies in its slot."""
        return self._ram.sizes.layouts[layer][expert]

    @property
    def num_resident(self) -> int:
        """Experts in RAM now; what is on its way is not counted."""
        return sum(map(len, self._ram.places.slot_of.values()))

    @property
    def num_on_device(self) -> int:
        """Experts on the device now."""
        return self._above.num_resident if self._above is not None else 0

    @property
    def num_device_slots(self) -> int:
        """Slots on the device, whoever lies in them."""
        return len(self._above.slots) if self._above is not None else 0

    @property
    def slots_per_layer(self) -> tuple[int, ...]:
        """RAM slots of each MoE layer; layers of one size exchange them while they compute."""
        return self._ram.residents.slots_per_layer

    def set_hints(self, mode: HintMode) -> None:
        """Choose whether guesses are listened to; between two steps alone."""
        self._ram.hints.withdraw()
        self._trial = HintTrial(mode)

    def attach(self, above: DeviceExperts | None) -> None:
        """Put device slots above the RAM slots, or take them away; between two steps alone.

        The slots that were there before are given back.
        """
        if self._above is not None:
            self._let_go(self._above.publish(is_waiting=True))
            before, self._above, self._ram.residents.above = self._above, None, {}
            left = [
                (layer, expert)
                for layer, table in before.tables.items()
                for expert in table.experts
            ]
            before.close()
            for layer, expert in left:
                self._ram.residents.show(layer, expert)
        if above is not None:
            self._above, self._ram.residents.above = above, above.tables
            self._ram.residents.wait_copied = above.wait_copied

    def find(self, expert: ExpertId) -> SlotKey | None:
        """Return where an expert lies, the hottest place, or None if it is not resident."""
        if self._above is not None:
            key = self._above.tables[expert.layer].key(expert.expert)
            if key is not None:
                return key
        slot = self._ram.places.slot_of[expert.layer].get(expert.expert)
        return None if slot is None else SlotKey(CPU, slot)

    def remember(self, order: Mapping[int, Sequence[int]]) -> None:
        """Hear what was resident at the last use and is read first; by layer, most used first."""
        self._ram.residents.remember(order)

    def recall(self) -> Mapping[int, Sequence[int]]:
        """Return what is resident now, in the same order."""
        return self._ram.residents.recall()

    def fill(self, num_per_layer: int, progress: FillProgress) -> None:
        """Read up to so many experts of each layer into RAM and wait for them."""
        self._ram.fill(num_per_layer, progress)

    def fill_behind(self) -> None:
        """Let experts be read into all free RAM slots in the background."""
        self._ram.fill_behind()

    def wait_filled(self, timeout_s: float) -> bool:
        """Wait until nothing is read in the background; return whether that was in time."""
        return self._ram.wait_filled(timeout_s)

    def begin_step(self) -> None:
        """Publish what has arrived and begin to upload; nothing may be in use."""
        self._time_step()
        self._ram.take_in()
        above = self._above
        if above is None:
            return
        self._let_go(above.publish())
        chosen = above.choose(self._ram.places.slot_of)
        if chosen:
            above.device.synchronize()
        for wanted in chosen:
            self._upload(above, wanted)

    def note_routing(self, layer: int, ids: torch.Tensor, weights: torch.Tensor) -> None:
        """Let the device's choice hear what a prompt chose, and the recorder what any step chose.

        A token alone is heard of when its experts are asked for.
        """
        if self._above is not None and len(ids) > 1:
            self._above.need_rows(layer, ids.cpu().numpy())
        self._num_rows = len(ids)
        if self.recorder is not None:
            self.recorder.note(layer, ids.cpu().numpy(), weights.float().cpu().numpy())

    @property
    def takes_guesses(self) -> bool:
        """Whether it is of use to guess what a layer will ask for, in steps of one token."""
        self._is_one_token = self._ram.takes_guesses
        return self._is_one_token and self._trial.is_on

    def guess(self, layer: int, experts: Sequence[int]) -> None:
        """Read what a layer will probably choose, the surest first, while the drive is idle."""
        self._ram.guess(layer, experts)

    def runs(self, layer: int, experts: Sequence[int]) -> Generator[Pairs, None, None]:
        """Yield distinct experts with their slots, in their order, in runs that lie ready.

        A run is used until the next is asked for. Raises ``LarderError`` if the drive fails. The
        iterator must be closed.
        """
        self._tally.note_uses(self._ram.residents.first_of(layer), experts)
        if self.reuse is not None:
            self.reuse.note(layer, experts)
        above = self._above
        if above is None:
            return self._ram.runs(layer, experts, {})
        on_device = above.find(layer, experts)
        if self._num_rows == 1:
            above.need(layer, experts)
        counters = self._counters
        counters.device_hits += len(on_device)
        counters.device_misses += len(experts) - len(on_device)
        counters.device_hit_bytes += self._ram.sizes.sum(layer, list(on_device))
        return self._ram.runs(layer, experts, on_device)

    def resize(
        self,
        slots_per_layer: Sequence[int],
        limit_bytes: int,
        above_per_layer: Sequence[int] = (),
        above_limit_bytes: int = 0,
    ) -> None:
        """Change the number of slots and the limits of the ledgers, between two steps alone.

        Of RAM slots the sum counts of layers whose slots have one size: they exchange them. Slots
        that go give their memory back before others come; free RAM slots are filled in the
        background. If there is not enough memory, numbers and limits stay as they were; only of a
        card that refuses the room that slots had a moment before, some are gone.
        """
        self._ram.hints.withdraw()
        self._trial.restart()
        self._begun_s = None
        above = self._above
        before, limit_before = self.slots_per_layer, self._ledger.limit_bytes
        above_before: tuple[int, ...] = ()
        above_limit_before = 0
        if above is not None:
            self._let_go(above.publish(is_waiting=True))
            above_before = above.slots_per_layer
            above_limit_before = above.device.ledger.limit_bytes
        try:
            with contextlib.ExitStack() as undo:
                undo.callback(self._resize, before, limit_before, above_before, above_limit_before)
                self._resize(slots_per_layer, limit_bytes, above_per_layer, above_limit_bytes)
                undo.pop_all()
        finally:
            self._ram.fill_behind()

    def close(self) -> None:
        """End readers and copies and give the memory back; may be called twice."""
        if self._above is not None:
            self._above.close()
        self._ram.close()

    def check(self) -> None:
        """Assert that slot tables, tiers and arenas are sound."""
        self._ram.check()
        if self._above is not None:
            self._above.check()

    def _resize(
        self,
        slots_per_layer: Sequence[int],
        limit_bytes: int,
        above_per_layer: Sequence[int],
        above_limit_bytes: int,
    ) -> None:
        above = self._above
        self._ram.residents.shrink(slots_per_layer)
        self._ledger.set_limit(limit_bytes)
        if above is not None:
            for layer, expert in above.shrink(above_per_layer):
                self._ram.residents.show(layer, expert)
            above.device.ledger.set_limit(above_limit_bytes)
        self._ram.residents.grow(slots_per_layer)
        if above is not None:
            # Last: a card that refuses room now may not even give back what it had before.
            above.grow(above_per_layer)

    def _time_step(self) -> None:
        """Let the trial know how long the step that ends took, if it was one token."""
        now_s = self._clock()
        if self._is_one_token and self._begun_s is not None:
            self._trial.note(now_s - self._begun_s)
        self._begun_s, self._is_one_token = now_s, False

    def _upload(self, above: DeviceExperts, wanted: WantedUpload) -> None:
        """Begin to upload an expert that lies in RAM."""
        places, layer, expert = self._ram.places, wanted.layer, wanted.expert
        above.upload(wanted, places.slots[places.slot_of[layer][expert]])
        places.held[layer].add(expert)
        if wanted.left is not None:
            self._ram.residents.show(*wanted.left)

    def _let_go(self, published: Sequence[tuple[int, int]]) -> None:
        """Let experts leave RAM that are on the device now."""
        for layer, expert in published:
            self._ram.places.held[layer].discard(expert)
            self._ram.residents.show(layer, expert)
