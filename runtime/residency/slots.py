"""The slot table of one layer on one device: which expert lies where, and which are in use."""

import dataclasses
from collections.abc import Iterable, Sequence

from runtime.errors import LarderError
from runtime.kernels.matrix import Slot
from runtime.policy.base import Policy
from runtime.protocol.errors import ErrorCode

CPU = "cpu"
"""The device whose slots lie in RAM."""
NOWHERE = -1


@dataclasses.dataclass(frozen=True, slots=True)
class SlotKey:
    """One slot: the device that holds it, and its index in that device's arena."""

    device: str
    slot: int


class SlotTable:
    """Maps the experts of one layer to slots; asks the policy who leaves, moves no bytes.

    Slots are numbered within the layer; the arena's index is ``first_slot`` higher::

        expert     0   1   2   3   4   5          slot      0   1   2
        slot_of    1   -   0   -   -   -          expert    2   0   -    (free: 2)

    A locked expert is in use by a computation and never leaves.
    """

    def __init__(
        self, num_experts: int, slots: Sequence[Slot], key_of_first: SlotKey, policy: Policy
    ) -> None:
        self.slots = list(slots)
        self.slot_of = [NOWHERE] * num_experts
        self._expert_of = [NOWHERE] * len(slots)
        self._free = list(range(len(slots) - 1, -1, -1))
        self._locked: set[int] = set()
        self._first = key_of_first
        self._policy = policy

    @property
    def num_slots(self) -> int:
        """How many experts can be resident."""
        return len(self.slots)

    @property
    def num_resident(self) -> int:
        """How many experts are."""
        return len(self.slots) - len(self._free)

    def key(self, expert: int) -> SlotKey | None:
        """Return the slot of a resident expert, or None."""
        slot = self.slot_of[expert]
        return None if slot == NOWHERE else SlotKey(self._first.device, self._first.slot + slot)

    def lock(self, experts: Iterable[int]) -> None:
        """Keep experts from leaving, resident ones and ones about to come."""
        self._locked.update(experts)

    def unlock(self, experts: Iterable[int]) -> None:
        """Let experts leave again."""
        self._locked.difference_update(experts)

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Tell the policy that resident experts were used."""
        self._policy.touch(experts, now)

    def make_room(self, now: int) -> int:
        """Return a slot that is free, taking it from the policy's victim if there is none.

        The slot belongs to the caller until ``fill`` or ``give_up``.
        """
        if self._free:
            return self._free.pop()
        victim = self._policy.victim(self._locked, now)
        if victim is None:
            raise LarderError(
                ErrorCode.INTERNAL, detail=f"all {self.num_slots} slots of a layer are locked"
            )
        self._policy.remove(victim)
        slot = self.slot_of[victim]
        self.slot_of[victim] = NOWHERE
        self._expert_of[slot] = NOWHERE
        return slot

    def fill(self, slot: int, expert: int, now: int) -> None:
        """Note that a slot from ``make_room`` now holds an expert."""
        self.slot_of[expert] = slot
        self._expert_of[slot] = expert
        self._policy.insert(expert, now)

    def give_up(self, slot: int) -> None:
        """Return a slot from ``make_room`` that was not filled."""
        self._free.append(slot)

    def check(self) -> None:
        """Assert that both directions agree and every slot is either free or taken once."""
        taken = [slot for slot in self.slot_of if slot != NOWHERE]
        assert len(taken) == len(set(taken))
        assert sorted(taken + self._free) == list(range(self.num_slots))
        for expert, slot in enumerate(self.slot_of):
            assert slot == NOWHERE or self._expert_of[slot] == expert
        for slot in self._free:
            assert self._expert_of[slot] == NOWHERE
        assert all(self.slot_of[expert] != NOWHERE for expert in self._locked)
