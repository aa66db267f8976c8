"""Layers whose RAM slots have one size, and who of them keeps one."""

import dataclasses
from collections.abc import Sequence

from runtime.policy.catalogue import LayerFacts, PolicyKind
from runtime.policy.keeper import SlotKeeper
from runtime.policy.score import LayerPosition
from runtime.residency.shape import CacheShape
from runtime.residency.sizes import SlotSizes


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SlotClass:
    """Layers that exchange slots with each other and with nobody else; they name their experts.

    Threads: used by the engine thread.
    """

    slot_bytes: int
    layers: tuple[int, ...]
    indices: tuple[int, ...]
    """Of the layers among all MoE layers."""
    keeper: SlotKeeper

    def num_slots(self, slots_per_layer: Sequence[int]) -> int:
        """Return how many of the slots of all MoE layers are of this class."""
        return sum(slots_per_layer[index] for index in self.indices)


def classes_of(shape: CacheShape, sizes: SlotSizes, kind: PolicyKind) -> list[SlotClass]:
    """Return the classes of a model, those of its first layers first; they have no slots yet."""
    num_layers = len(shape.moe_layers)
    position = LayerPosition()
    policies = [
        kind.make(0, LayerFacts(shape.num_experts, index, num_layers, position=position))
        for index in range(num_layers)
    ]
    indices_of: dict[int, list[int]] = {}
    for index, layer in enumerate(shape.moe_layers):
        indices_of.setdefault(sizes.slot_bytes[layer], []).append(index)
    return [
        SlotClass(
            slot_bytes=slot_bytes,
            layers=tuple(shape.moe_layers[index] for index in indices),
            indices=tuple(indices),
            keeper=SlotKeeper(
                [policies[index] for index in indices],
                [0] * len(indices),
                is_shared=kind.is_shared,
                max_age_steps=kind.max_age_steps,
            ),
        )
        for slot_bytes, indices in indices_of.items()
    ]
