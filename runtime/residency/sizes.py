"""What the slots of experts take, and the order of experts, where their formats differ."""

from collections import Counter
from collections.abc import Iterable, Sequence

from runtime.residency.shape import CacheShape
from runtime.spec.mix import mixed_experts
from runtime.spec.tensors import ExpertId, ExpertLayout, ExpertPart
from runtime.store.base import ExpertStore


class SlotSizes:
    """The size of every expert's record.

    Where every expert has a slot, the slot has the size of its expert; else any expert may come to
    any slot, which has the size of the largest.
    """

    def __init__(self, store: ExpertStore, shape: CacheShape) -> None:
        self.largest = store.layout.record_bytes
        self.layouts: dict[int, tuple[ExpertLayout, ...]] = {
            layer: tuple(
                store.layout_of(ExpertId(layer, expert)) for expert in range(shape.num_experts)
            )
            for layer in shape.moe_layers
        }
        self._ranks = {layer: _ranks_of(layouts) for layer, layouts in self.layouts.items()}
        sizes = [each.record_bytes for layouts in self.layouts.values() for each in layouts]
        self.is_mixed = any(each != self.largest for each in sizes)
        self.total = sum(sizes)
        """What all records take."""

    @property
    def mean_bits(self) -> float:
        """Bits of a weight in the mean, scales included; 0 where all have one format."""
        numbers = Counter(each.formats for layouts in self.layouts.values() for each in layouts)
        if len({form for formats in numbers for form in formats}) <= 1:
            return 0.0
        gate = next(iter(self.layouts.values()))[0][ExpertPart.GATE]
        return mixed_experts(numbers, gate.columns, gate.rows).bits

    def of(self, layer: int, expert: int) -> int:
        """Return what the record of one expert takes."""
        return self.layouts[layer][expert].record_bytes if self.is_mixed else self.largest

    def sum(self, layer: int, experts: Sequence[int]) -> int:
        """Return what the records of some experts of a layer take."""
        if not self.is_mixed:
            return self.largest * len(experts)
        return sum(self.of(layer, expert) for expert in experts)

    def ordered(self, layer: int, experts: Sequence[int]) -> Sequence[int]:
        """Return experts, given in ascending order, those of one layout together."""
        ranks = self._ranks[layer]
        if not ranks:
            return experts
        return sorted(experts, key=lambda expert: (ranks[expert], expert))


def _ranks_of(layouts: Sequence[ExpertLayout]) -> list[int]:
    """Return of each expert of a layer the place of its layout, small ones first; none if alike."""
    different = {id(each): each for each in layouts}
    if len(different) == 1:
        return []
    order = sorted(different, key=lambda key: different[key].record_bytes)
    rank_of = {key: rank for rank, key in enumerate(order)}
    return [rank_of[id(each)] for each in layouts]


def every(shape: CacheShape) -> Iterable[tuple[int, int]]:
    """Yield every expert as (layer, expert)."""
    return ((layer, expert) for layer in shape.moe_layers for expert in range(shape.num_experts))
