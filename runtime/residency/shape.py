"""How many slots each MoE layer has."""

import dataclasses

from runtime.spec.ram_slots import with_staging


@dataclasses.dataclass(frozen=True, slots=True)
class CacheShape:
    """How many slots each MoE layer has, and how many experts compete for them."""

    moe_layers: tuple[int, ...]
    slots_per_layer: tuple[int, ...]
    """RAM slots in the order of ``moe_layers``, each at least one."""
    num_experts: int
    above_per_layer: tuple[int, ...] = ()
    """Device slots in the same order; empty where no device is used."""
    num_staging: int = 4
    """RAM slots of each size beside those, from which experts are computed that do not stay."""

    def __post_init__(self) -> None:
        if len(self.moe_layers) != len(self.slots_per_layer):
            raise ValueError("one number of slots for each MoE layer")
        if any(not 0 < slots <= self.num_experts for slots in self.slots_per_layer):
            raise ValueError(f"slots from 1 to {self.num_experts}: {self.slots_per_layer}")
        if self.above_per_layer and len(self.moe_layers) != len(self.above_per_layer):
            raise ValueError("one number of device slots for each MoE layer")
        if any(not 0 <= slots <= self.num_experts for slots in self.above_per_layer):
            raise ValueError(f"device slots from 0 to {self.num_experts}: {self.above_per_layer}")

    def num_absent(self, num_slots: int) -> int:
        """Return how many experts have no slot if all layers together have so many."""
        return len(self.moe_layers) * self.num_experts - num_slots

    def with_staging(self, num_slots: int, num_layers: int) -> int:
        """Return the RAM slots of layers that exchange so many, with those that nobody keeps."""
        return with_staging(num_slots, num_layers * self.num_experts, self.num_staging)
