"""The slots in RAM, and which expert of which layer lies in each."""

from collections import Counter

from runtime.errors import LarderError
from runtime.kernels.matrix import Slot
from runtime.memory.large_pages import Span
from runtime.memory.ledger import Ledger
from runtime.memory.slot_arena import SlotArena
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.residency.sizes import SlotSizes


class RamPlaces:
    """Slots that experts of layers of their size can lie in; moves no bytes, decides nothing.

    Where ``is_exact``, which it may be while every expert has a slot, each has the size of an
    expert, and experts come to slots of their own size.

    What holds no expert is free, which is where experts are read to. A slot that was taken is lent:
    it belongs to whoever has it until ``put`` or ``give_back``::

        slot_of   layer 1: {0: 8, 2: 7}   layer 4: {5: 3}        free: [12, 4]        lent: {9}

    A held expert is being copied to a device.

    Threads: used by the engine thread; readers fill slots that were lent for them.
    """

    def __init__(self, ledger: Ledger, sizes: SlotSizes, moe_layers: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._arena = SlotArena(ledger, MemoryPart.EXPERTS, sizes.records.largest_bytes)
        self.is_exact = False
        """Changed only while there are no slots."""
        self.slots: dict[int, Slot] = {}
        self.slot_of: dict[int, dict[int, int]] = {layer: {} for layer in moe_layers}
        self.held: dict[int, set[int]] = {layer: set() for layer in moe_layers}
        self._free: dict[int, list[int]] = {}
        """By size."""
        self._numbers: Counter[int] = Counter()
        self._lent: set[int] = set()

    @property
    def num_slots(self) -> int:
        """All slots."""
        return len(self.slots)

    def num_slots_of(self, slot_bytes: int) -> int:
        """Return how many slots there are of a size."""
        return self._numbers[slot_bytes]

    def num_free(self, layer: int) -> int:
        """Return how many slots for a layer hold nothing and are lent to nobody.

        Where slots are exact, there is one for each of its experts that lies nowhere.
        """
        if self.is_exact:
            return sum(map(len, self._free.values()))
        return len(self._free.get(self._sizes.slot_bytes[layer], ()))

    def is_for(self, layer: int, slot: int) -> bool:
        """Whether a slot has the size of those of a layer."""
        return len(self._arena.view(slot)) == self._sizes.slot_bytes[layer]

    def add(self, slot_bytes: int) -> None:
        """Add a free slot of a size; raises ``RAM_BUDGET_TOO_SMALL`` or ``OUT_OF_MEMORY``."""
        number = self._arena.add(slot_bytes)
        self.slots[number] = Slot.from_buffer(self._arena.view(number))
        self._free.setdefault(slot_bytes, []).insert(0, number)
        self._numbers[slot_bytes] += 1

    def drop(self, slot_bytes: int) -> None:
        """Give the memory of a free slot of a size back."""
        number = self._free[slot_bytes].pop()
        self._numbers[slot_bytes] -= 1
        del self.slots[number]
        self._arena.drop(number)

    def drop_all(self) -> None:
        """Give the memory of all slots back, which must be free."""
        for slot_bytes, free in self._free.items():
            while free:
                self.drop(slot_bytes)
        assert not self.slots, "a slot is in use"

    def spans(self) -> list[Span]:
        """Return where slots lie in memory now, in any thread."""
        return self._arena.spans()

    def take(self, layer: int, expert: int) -> int:
        """Borrow a free slot for an expert; there must be one."""
        free = self._free.get(self._size_for(layer, expert))
        if not free:
            raise LarderError(ErrorCode.INTERNAL, detail="all slots in RAM are in use")
        slot = free.pop()
        self._lent.add(slot)
        return slot

    def give_back(self, slot: int) -> None:
        """Return a lent slot that holds nothing of use."""
        self._lent.remove(slot)
        self._set_free(slot)

    def view(self, slot: int) -> memoryview:
        """Return the writable bytes of a slot."""
        return self._arena.view(slot)

    def put(self, layer: int, expert: int, slot: int) -> None:
        """Note that a lent slot holds an expert that stays."""
        self._lent.remove(slot)
        self.slot_of[layer][expert] = slot

    def clear(self, layer: int, expert: int) -> None:
        """Let an expert leave; its slot is free."""
        if expert in self.held[layer]:
            raise LarderError(ErrorCode.INTERNAL, detail=f"expert {expert} is being copied")
        self._set_free(self.slot_of[layer].pop(expert))

    def close(self) -> None:
        """Give all memory back; may be called twice."""
        self.slots.clear()
        self._numbers.clear()
        for places in self.slot_of.values():
            places.clear()
        self._arena.close()

    def _size_for(self, layer: int, expert: int) -> int:
        """Return the size of the slots that an expert may lie in."""
        return self._sizes.of(layer, expert) if self.is_exact else self._sizes.slot_bytes[layer]

    def _set_free(self, slot: int) -> None:
        self._free[len(self._arena.view(slot))].append(slot)

    def check(self) -> None:
        """Assert that every slot is free, lent or taken once."""
        self._arena.check()
        taken = [slot for places in self.slot_of.values() for slot in places.values()]
        free = [slot for each in self._free.values() for slot in each]
        assert sorted([*taken, *free, *self._lent]) == sorted(self.slots)
        assert Counter(len(self.view(slot)) for slot in self.slots) == +self._numbers
        for size, each in self._free.items():
            assert all(len(self.view(slot)) == size for slot in each)
        for layer, places in self.slot_of.items():
            for expert, slot in places.items():
                size = len(self.view(slot))
                assert size == self._size_for(layer, expert) >= self._sizes.of(layer, expert)
        assert len(self.slots) == self._arena.num_slots
        for layer, held in self.held.items():
            assert held <= self.slot_of[layer].keys()
