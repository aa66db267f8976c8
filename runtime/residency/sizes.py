"""What the slots of experts take where experts have different formats."""

from collections.abc import Iterable, Sequence

from runtime.residency.shape import CacheShape
from runtime.spec.tensors import ExpertId, ExpertLayout
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
        sizes = [each.record_bytes for layouts in self.layouts.values() for each in layouts]
        self.is_mixed = any(each != self.largest for each in sizes)
        self.total = sum(sizes)
        """What all records take."""

    def of(self, layer: int, expert: int) -> int:
        """Return what the record of one expert takes."""
        return self.layouts[layer][expert].record_bytes if self.is_mixed else self.largest

    def sum(self, layer: int, experts: Sequence[int]) -> int:
        """Return what the records of some experts of a layer take."""
        if not self.is_mixed:
            return self.largest * len(experts)
        return sum(self.of(layer, expert) for expert in experts)

    def ordered(self, layer: int, experts: Sequence[int]) -> Sequence[int]:
        """Return experts in ascending order, those of one format together."""
        if not self.is_mixed:
            return experts
        return sorted(experts, key=lambda expert: (self.of(layer, expert), expert))


def every(shape: CacheShape) -> Iterable[tuple[int, int]]:
    """Yield every expert as (layer, expert)."""
    return ((layer, expert) for layer in shape.moe_layers for expert in range(shape.num_experts))
