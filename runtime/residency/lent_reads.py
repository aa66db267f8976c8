"""Reads into slots that were lent for them."""

import dataclasses
from collections.abc import Callable, Sequence

from runtime.residency.lanes import DemandedReads
from runtime.residency.places import RamPlaces
from runtime.spec.tensors import ExpertId

Begin = Callable[[Sequence[tuple[ExpertId, memoryview]]], DemandedReads]
"""Lets targets be filled; a method of ``ReadLanes``."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LentRead:
    """An expert of a layer that is read, or was, into a lent slot."""

    expert: int
    slot: int
    reads: DemandedReads
    number: int
    """Of this read among ``reads``."""


def begin_reads(
    layer: int, experts: Sequence[int], places: RamPlaces, begin: Begin
) -> list[LentRead]:
    """Borrow a slot for each expert, of which so many must be free, and let them be read."""
    slots = [places.take(layer, expert) for expert in experts]
    reads = begin(
        [
            (ExpertId(layer, expert), places.view(slot))
            for expert, slot in zip(experts, slots, strict=True)
        ]
    )
    return [
        LentRead(expert, slot, reads, number)
        for number, (expert, slot) in enumerate(zip(experts, slots, strict=True))
    ]
