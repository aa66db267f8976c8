"""Where experts lie on one device: slots, and which expert of a layer is in which."""

import dataclasses

CPU = "cpu"
"""The device whose slots lie in RAM."""
NOWHERE = -1


@dataclasses.dataclass(frozen=True, slots=True)
class SlotKey:
    """One slot: the device that holds it, and its number in that device's arena."""

    device: str
    slot: int


class SlotTable:
    """Maps the experts of one layer to slots of a device; decides nothing, moves no bytes.

    Slots have the numbers of the arena that they lie in, which all layers share::

        expert     0   1   2   3   4   5
        slot_of    8   -   7   -   -   -
    """

    def __init__(self, device: str, num_experts: int) -> None:
        self.slot_of = [NOWHERE] * num_experts
        self._device = device

    @property
    def num_resident(self) -> int:
        """How many experts lie there."""
        return len(self.slot_of) - self.slot_of.count(NOWHERE)

    @property
    def experts(self) -> list[int]:
        """The experts that lie there, ascending."""
        return [expert for expert, slot in enumerate(self.slot_of) if slot != NOWHERE]

    def key(self, expert: int) -> SlotKey | None:
        """Return the slot of a resident expert, or None."""
        slot = self.slot_of[expert]
        return None if slot == NOWHERE else SlotKey(self._device, slot)

    def __contains__(self, expert: object) -> bool:
        """Whether an expert is resident."""
        return isinstance(expert, int) and self.slot_of[expert] != NOWHERE

    def fill(self, slot: int, expert: int) -> None:
        """Note that a slot holds an expert now."""
        self.slot_of[expert] = slot

    def clear(self, expert: int) -> int:
        """Let a resident expert leave and return its slot."""
        slot, self.slot_of[expert] = self.slot_of[expert], NOWHERE
        return slot
