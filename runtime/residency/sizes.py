"""What the slots of experts take, and the order of experts, where their formats differ."""

from collections import Counter
from collections.abc import Iterable, Sequence

from runtime.residency.shape import CacheShape
from runtime.spec.mix import mixed_experts
from runtime.spec.ram_slots import Records
from runtime.spec.tensors import ExpertId, ExpertLayout, ExpertPart
from runtime.store.base import ExpertStore


class SlotSizes:
    """The size of every expert's record, and of the slots of every layer.

    A slot has the size of the largest record of its layer, so that any expert of layers of that
    size may come to it. Where experts of a layer differ and every expert of the model has a slot,
    each slot has the size of its expert.
    """

    def __init__(self, store: ExpertStore, shape: CacheShape) -> None:
        self.layouts: dict[int, tuple[ExpertLayout, ...]] = {
            layer: tuple(
                store.layout_of(ExpertId(layer, expert)) for expert in range(shape.num_experts)
            )
            for layer in shape.moe_layers
        }
        self._ranks = {layer: _ranks_of(layouts) for layer, layouts in self.layouts.items()}
        sizes = {
            layer: [each.record_bytes for each in layouts]
            for layer, layouts in self.layouts.items()
        }
        self.slot_bytes = {layer: max(each) for layer, each in sizes.items()}
        """Of a slot of each layer, unless slots are exact."""
        self.has_mixed_layers = any(min(each) < max(each) for each in sizes.values())
        self.records = Records(sum(map(sum, sizes.values())), tuple(self.slot_bytes.values()))

    @property
    def mean_bits(self) -> float:
        """Bits of a weight in the mean, scales included; 0 where all have one format."""
        numbers = [Counter(each.formats for each in layer) for layer in self.layouts.values()]
        if len({form for layer in numbers for formats in layer for form in formats}) <= 1:
            return 0.0
        gate = next(iter(self.layouts.values()))[0][ExpertPart.GATE]
        return mixed_experts(numbers, gate.columns, gate.rows).bits

    def of(self, layer: int, expert: int) -> int:
        """Return what the record of one expert takes."""
        if self.has_mixed_layers:
            return self.layouts[layer][expert].record_bytes
        return self.slot_bytes[layer]

    def sum(self, layer: int, experts: Sequence[int]) -> int:
        """Return what the records of some experts of a layer take."""
        if not self.has_mixed_layers:
            return self.slot_bytes[layer] * len(experts)
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
