"""Who is resident in RAM: the decisions of the policies, carried out on the slots."""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from runtime.errors import LarderError
from runtime.memory.ledger import Ledger
from runtime.policy.catalogue import PolicyKind
from runtime.protocol.plan import MemoryPart
from runtime.residency.places import RamPlaces
from runtime.residency.shape import CacheShape
from runtime.residency.sizes import SlotSizes, every
from runtime.residency.slot_classes import SlotClass, classes_of
from runtime.spec.footprint import policy_bytes
from runtime.telemetry.expert_tally import IN_RAM, IN_VRAM, ON_DRIVE, ExpertTally

CallOff = Callable[[int, int], int]
"""Ends or forgets the read of an expert (layer, expert) that is on its way; returns its slot."""
WaitCopied = Callable[[int], Sequence[int]]
"""Waits for copies of a layer's experts to the device and returns these experts."""


class RamResidents:
    """Experts of all layers that have a place in RAM, lying there or on their way.

    A keeper decides who has a place; a place becomes a slot when the expert was read. Layers whose
    slots have one size share a keeper. Beside its slots there are some that nobody keeps: experts
    are read there, and those that the keeper does not let in are computed from there::

        slots of 2.2 MB   layers 0, 1, 4, ...   keeper, residents   | staging
        slots of 2.9 MB   layers 2, 3, 5, ...   keeper, residents   | staging

    Threads: used by the engine thread.
    """

    def __init__(
        self,
        shape: CacheShape,
        ledger: Ledger,
        sizes: SlotSizes,
        kind: PolicyKind,
        tally: ExpertTally,
    ) -> None:
        self._shape = shape
        self._ledger = ledger
        self._tally = tally
        self._policy_bytes = policy_bytes(len(shape.moe_layers), shape.num_experts)
        ledger.take(MemoryPart.EXPERTS, self._policy_bytes)
        self._sizes = sizes
        self.places = RamPlaces(ledger, sizes, shape.moe_layers)
        self._index_of = {layer: index for index, layer in enumerate(shape.moe_layers)}
        self._classes = classes_of(shape, sizes, kind)
        self._homes = {
            layer: (each, place)
            for each in self._classes
            for place, layer in enumerate(each.layers)
        }
        self._num_slots = 0
        self._now = 0
        self._before: Mapping[int, Mapping[int, int]] = {}
        self.above: Mapping[int, Container[int]] = {}
        """What the device holds of each layer; it leaves RAM first."""
        self.call_off: CallOff = _nothing_comes
        self.wait_copied: WaitCopied = _nothing_copied
        try:
            self.shrink(shape.slots_per_layer)
            self.grow(shape.slots_per_layer)
        except LarderError:
            self.close()
            raise

    @property
    def slots_per_layer(self) -> tuple[int, ...]:
        """Slots of each layer; layers of one size exchange them while they compute."""
        slots = [0] * len(self._index_of)
        for each in self._classes:
            for index, number in zip(each.indices, each.keeper.slots, strict=True):
                slots[index] = number
        return tuple(slots)

    @property
    def holds_all(self) -> bool:
        """Whether every expert has a slot, so that there is nothing to decide."""
        return not self._shape.num_absent(self._num_slots)

    def first_of(self, layer: int) -> int:
        """Return the number of a layer's first expert in the tally."""
        return self._index_of[layer] * self._shape.num_experts

    def num_free(self, layer: int) -> int:
        """Return how many slots of a layer nobody has a place in."""
        home, place = self._homes[layer]
        return home.keeper.num_free(place)

    def spare(self, layer: int) -> tuple[int, int]:
        """Return how many slots for a layer nobody keeps, and how many of them are free."""
        (home, _), places = self._homes[layer], self.places
        num_slots = places.num_slots_of(home.slot_bytes)
        return num_slots - sum(home.keeper.slots), places.num_free(layer) - home.keeper.num_all_free

    def absent(self, layer: int) -> list[int]:
        """Return the experts without a place, the most wanted first.

        These are the most used ones, of equals those of the last use first; those that the device
        holds come last.
        """
        residents = self._residents(layer)
        above, first, uses = self.above.get(layer), self.first_of(layer), self._tally.uses
        absent = [expert for expert in range(self._shape.num_experts) if expert not in residents]
        before, last = self._before.get(layer, {}), self._shape.num_experts

        def order(expert: int) -> tuple[bool, int, int]:
            is_above = above is not None and expert in above
            return is_above, -uses[first + expert], before.get(expert, last)

        return sorted(absent, key=order)

    def remember(self, order: Mapping[int, Sequence[int]]) -> None:
        """Hear what lay here when the model was used last: by layer, the most used first."""
        self._before = {
            layer: {expert: place for place, expert in enumerate(experts)}
            for layer, experts in order.items()
        }

    def recall(self) -> dict[int, list[int]]:
        """Return what lies here or on the device, in the same order."""
        return {layer: self._here(layer) for layer in self._shape.moe_layers}

    def reserve(self, layer: int, experts: Sequence[int]) -> list[int]:
        """Give places to experts that nobody needed yet; return the slots to read them to."""
        home, place = self._homes[layer]
        home.keeper.preload(place, experts, self._now)
        return [self.places.take(layer, expert) for expert in experts]

    def arrive(self, layer: int, expert: int, slot: int) -> None:
        """Note that an expert that has a place lies in a slot."""
        self.places.put(layer, expert, slot)
        self.show(layer, expert)

    def forget(self, layer: int, expert: int, slot: int) -> None:
        """Note that an expert that has a place does not come."""
        self.places.give_back(slot)
        home, place = self._homes[layer]
        home.keeper.remove(place, expert, self._now)
        self.show(layer, expert)

    def begin(self, layer: int, experts: Sequence[int]) -> None:
        """Begin a step of a layer that needs distinct experts."""
        self._now += 1
        home, place = self._homes[layer]
        home.keeper.begin(place, experts, self._now)

    def admit(self, layer: int, expert: int, slot: int, locked: Collection[int]) -> None:
        """Keep an expert that was read and computed if it is worth it; else its slot is free.

        ``locked`` experts of the layer stay.
        """
        home, place = self._homes[layer]
        held = self.places.held[layer]
        spare: Sequence[int] = ()
        if self.above:
            above = self.above[layer]
            spare = tuple(other for other in home.keeper.residents(place) if other in above)
        if held:
            locked = held.union(locked)
        admission = home.keeper.admit(place, expert, self._now, locked, spare=spare)
        if admission is None:
            self.places.give_back(slot)
            return
        if admission.left is not None:
            left, other = admission.left
            self._evict(home.layers[left], other)
        self.arrive(layer, expert, slot)

    def end(self, layer: int, *, is_changed: bool) -> None:
        """End a step of a layer; ``is_changed`` says whether it missed any expert."""
        home, place = self._homes[layer]
        home.keeper.end(place, self._now, is_changed=is_changed)

    def shrink(self, slots_per_layer: Sequence[int]) -> None:
        """Have no more slots of each class than its layers have; memory is given back.

        Where slots become exact, or are no more, all of them go, and ``grow`` adds others.
        """
        is_whole = not self._shape.num_absent(sum(slots_per_layer))
        is_exact = is_whole and self._sizes.has_mixed_layers
        if is_exact != self.places.is_exact:
            self._begin_anew(is_exact=is_exact)
        if is_exact:
            return
        for each in self._classes:
            num_slots = each.num_slots(slots_per_layer)
            self._shrink_class(each, num_slots)
            num_places = self._shape.with_staging(num_slots, len(each.layers))
            while self.places.num_slots_of(each.slot_bytes) > num_places:
                self.places.drop(each.slot_bytes)

    def grow(self, slots_per_layer: Sequence[int]) -> None:
        """Have no fewer slots of each class than its layers have; ``shrink`` was called before."""
        is_exact = self.places.is_exact
        if is_exact:
            # Some may be there, where memory ran out when they were added last.
            numbers = Counter(self._sizes.of(*each) for each in every(self._shape))
            for slot_bytes, number in numbers.items():
                while self.places.num_slots_of(slot_bytes) < number:
                    self.places.add(slot_bytes)
        for each in self._classes:
            num_slots = each.num_slots(slots_per_layer)
            num_places = self._shape.with_staging(num_slots, len(each.layers))
            while not is_exact and self.places.num_slots_of(each.slot_bytes) < num_places:
                self.places.add(each.slot_bytes)
            each.keeper.grow(num_slots, self._shape.num_experts, self._now)
            self._note_slots()

    def _begin_anew(self, *, is_exact: bool) -> None:
        """Let everybody leave and drop all slots."""
        for each in self._classes:
            self._shrink_class(each, 0)
        self.places.drop_all()
        self.places.is_exact = is_exact

    def _shrink_class(self, each: SlotClass, num_slots: int) -> None:
        for place, expert in each.keeper.shrink(num_slots, self._now):
            self._evict(each.layers[place], expert)
        self._note_slots()

    def _note_slots(self) -> None:
        self._num_slots = sum(sum(each.keeper.slots) for each in self._classes)

    def show(self, layer: int, expert: int) -> None:
        """Write down in which tier an expert lies now."""
        is_above = bool(self.above) and expert in self.above[layer]
        is_here = expert in self.places.slot_of[layer]
        tier = IN_VRAM if is_above else IN_RAM if is_here else ON_DRIVE
        self._tally.tiers[self.first_of(layer) + expert] = tier

    def close(self) -> None:
        """Give the memory back; may be called twice."""
        self.places.close()
        self._ledger.give_back(MemoryPart.EXPERTS, self._policy_bytes)
        self._policy_bytes = 0

    def check(self, arriving: Callable[[int], Iterable[int]]) -> None:
        """Assert that slots, places and tiers agree; ``arriving`` are on the way to a layer."""
        self.places.check()
        num_places = 0
        for each in self._classes:
            each.keeper.check()
            num_slots = self._shape.with_staging(sum(each.keeper.slots), len(each.layers))
            num_places += num_slots
            if not self.places.is_exact:
                assert self.places.num_slots_of(each.slot_bytes) == num_slots
        assert self.places.num_slots == num_places
        assert self._num_slots == sum(self.slots_per_layer)
        tiers = self._tally.tiers
        for layer in self._index_of:
            coming = set(arriving(layer))
            assert self._residents(layer) == self.places.slot_of[layer].keys() | coming
            for expert in range(self._shape.num_experts):
                shown = tiers[self.first_of(layer) + expert]
                self.show(layer, expert)
                assert expert in coming or shown == tiers[self.first_of(layer) + expert]

    def _here(self, layer: int) -> list[int]:
        """Return what lies here or on the device of a layer, the most used first."""
        first, above, here = self.first_of(layer), self.above.get(layer, ()), self.places.slot_of
        uses = self._tally.uses
        found = [x for x in range(self._shape.num_experts) if x in here[layer] or x in above]
        return sorted(found, key=lambda expert: -uses[first + expert])

    def _residents(self, layer: int) -> AbstractSet[int]:
        """Return the experts of a layer that have a place."""
        home, place = self._homes[layer]
        return home.keeper.residents(place)

    def _evict(self, layer: int, expert: int) -> None:
        """Free the slot of an expert that lost its place."""
        if expert not in self.places.slot_of[layer]:
            self.places.give_back(self.call_off(layer, expert))
        else:
            if expert in self.places.held[layer]:
                self.places.held[layer].difference_update(self.wait_copied(layer))
            self.places.clear(layer, expert)
        self.show(layer, expert)


def _nothing_comes(layer: int, expert: int) -> int:
    """Say that nothing is on its way before anything was asked for."""
    raise AssertionError(f"expert {expert} of layer {layer} has no slot")


def _nothing_copied(layer: int) -> Sequence[int]:
    """Return that nothing is copied where there is no device."""
    del layer
    return ()
