"""The slot table of one layer on one device: which expert lies where, and which are in use."""

import dataclasses
from collections.abc import Iterable

from runtime.kernels.matrix import Slot
from runtime.policy.base import PolicyFactory

CPU = "cpu"
"""The device whose slots lie in RAM."""
NOWHERE = -1


@dataclasses.dataclass(frozen=True, slots=True)
class SlotKey:
    """One slot: the device that holds it, and its number in that device's arena."""

    device: str
    slot: int


class SlotTable:
    """Maps the experts of one layer to slots; asks the policy who leaves, moves no bytes.

    Slots have the numbers of the arena that they lie in; they may be added and dropped::

        expert     0   1   2   3   4   5          slot      7   8   12
        slot_of    8   -   7   -   -   -          expert    2   0   -    (free: 12)

    A slot that was taken by ``take`` or ``evict`` is lent: it belongs to whoever has it until
    ``fill`` or ``drop_slot``.
    """

    def __init__(self, device: str, num_experts: int, policy_factory: PolicyFactory) -> None:
        self.slots: dict[int, Slot] = {}
        self.slot_of = [NOWHERE] * num_experts
        self._expert_of: dict[int, int] = {}
        self._free: list[int] = []
        self._lent: set[int] = set()
        self._device = device
        self._policy = policy_factory(0)

    @property
    def num_slots(self) -> int:
        """How many experts can be resident."""
        return len(self.slots)

    @property
    def num_resident(self) -> int:
        """How many experts are."""
        return len(self._expert_of)

    @property
    def num_free(self) -> int:
        """Slots that hold nothing and are lent to nobody."""
        return len(self._free)

    def key(self, expert: int) -> SlotKey | None:
        """Return the slot of a resident expert, or None."""
        slot = self.slot_of[expert]
        return None if slot == NOWHERE else SlotKey(self._device, slot)

    def add_slot(self, number: int, slot: Slot) -> None:
        """Add a slot, which is free."""
        self.slots[number] = slot
        self._free.insert(0, number)
        self._policy.resize(self.num_slots)

    def drop_slot(self, number: int) -> None:
        """Take a lent slot out of the table for good."""
        self._lent.remove(number)
        del self.slots[number]
        self._policy.resize(self.num_slots)

    def __contains__(self, expert: object) -> bool:
        """Whether an expert is resident."""
        return isinstance(expert, int) and self.slot_of[expert] != NOWHERE

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Tell the policy that resident experts were used."""
        self._policy.touch(experts, now)

    def take(self) -> int | None:
        """Borrow a free slot; None if there is none."""
        if not self._free:
            return None
        slot = self._free.pop()
        self._lent.add(slot)
        return slot

    def victim(self, now: int) -> int | None:
        """Return the expert that would leave; None if there is none."""
        return self._policy.victim((), now)

    def evict(self, expert: int) -> int:
        """Make a resident expert leave and borrow its slot."""
        self._policy.remove(expert)
        slot = self.slot_of[expert]
        self.slot_of[expert] = NOWHERE
        del self._expert_of[slot]
        self._lent.add(slot)
        return slot

    def fill(self, slot: int, expert: int, now: int) -> None:
        """Note that a lent slot now holds an expert."""
        self._lent.remove(slot)
        self.slot_of[expert] = slot
        self._expert_of[slot] = expert
        self._policy.insert(expert, now)

    def check(self) -> None:
        """Assert that both directions agree and every slot is free, lent or taken once."""
        taken = [slot for slot in self.slot_of if slot != NOWHERE]
        assert sorted([*taken, *self._free, *self._lent]) == sorted(self.slots)
        assert len(self._expert_of) == len(taken)
        for expert, slot in enumerate(self.slot_of):
            assert slot == NOWHERE or self._expert_of[slot] == expert
