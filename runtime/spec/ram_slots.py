"""What slots of experts take in RAM, each of the size of the largest record of its layer.

Pure arithmetic: what the planner reckons with is exactly what the engine takes from its ledger.
"""

import bisect
import dataclasses
import functools
from collections.abc import Sequence
from typing import Self

from runtime.spec.footprint import policy_bytes, staging_slots
from runtime.spec.model import ModelSpec


@dataclasses.dataclass(frozen=True, slots=True)
class Records:
    """What the records of all experts take."""

    total_bytes: int
    slot_bytes: tuple[int, ...]
    """Of the largest record of each MoE layer, which a slot of that layer has to have.

    Layers of one size are a class: they exchange slots.
    """

    @classmethod
    def alike(cls, record_bytes: int, spec: ModelSpec) -> Self:
        """Return those of a model whose experts all take as much."""
        num_layers = len(spec.moe_layers)
        return cls(record_bytes * num_layers * spec.num_experts, (record_bytes,) * num_layers)

    @property
    def largest_bytes(self) -> int:
        """Of the largest record of all, which a slot has to have where any expert may come."""
        return max(self.slot_bytes, default=0)


def even_slots(num_slots: int, num_layers: int) -> Sequence[int]:
    """Return slots per layer: evenly, what is left over to the first layers, which miss most."""
    if not num_layers:
        return []
    each, left = divmod(num_slots, num_layers)
    return [each + (index < left) for index in range(num_layers)]


def ram_experts_bytes(spec: ModelSpec, records: Records, slots_per_layer: Sequence[int]) -> int:
    """Return what experts take of RAM: slots of all layers, staging, and what the policy keeps.

    Every class has its own staging. Slots have exact sizes where every expert has one.
    """
    classes = _classes_of(records.slot_bytes)
    numbers = [sum(slots_per_layer[place] for place in places) for _, places in classes]
    return _experts_bytes(spec, records, numbers)


def even_experts_bytes(spec: ModelSpec, records: Records, num_slots: int) -> int:
    """Return the same for so many slots, each layer having as many (``even_slots``)."""
    num_layers = max(1, len(records.slot_bytes))
    each, left = divmod(num_slots, num_layers)
    classes = _classes_of(records.slot_bytes)
    numbers = [each * len(places) + bisect.bisect_left(places, left) for _, places in classes]
    return _experts_bytes(spec, records, numbers)


def ram_slots_within(spec: ModelSpec, records: Records, num_bytes: int) -> int:
    """Return the most slots, each layer having as many, whose experts take no more than this."""
    num_layers = len(spec.moe_layers)
    num_all = num_layers * spec.num_experts
    if not num_all:
        return 0
    room_bytes = num_bytes - policy_bytes(num_layers, spec.num_experts)
    if room_bytes >= records.total_bytes:
        return num_all
    num_staging = staging_slots(spec) * len(_classes_of(records.slot_bytes))
    least = max(0, room_bytes // records.largest_bytes - num_staging)
    most = min(num_all - 1, room_bytes // min(records.slot_bytes))
    num_fitting = bisect.bisect_right(
        range(least, most + 1),
        num_bytes,
        key=lambda number: even_experts_bytes(spec, records, number),
    )
    return max(0, least + num_fitting - 1)


def with_staging(num_slots: int, num_all: int, num_staging: int) -> int:
    """Return the slots of a class with those that nobody keeps; none if every expert stays."""
    return num_slots + min(num_staging, num_all - num_slots)


def _experts_bytes(spec: ModelSpec, records: Records, numbers: Sequence[int]) -> int:
    """Return what experts take with so many slots of each class."""
    num_layers = len(spec.moe_layers)
    kept_bytes = policy_bytes(num_layers, spec.num_experts)
    if sum(numbers) == num_layers * spec.num_experts:
        return records.total_bytes + kept_bytes
    num_staging = staging_slots(spec)
    classes = _classes_of(records.slot_bytes)
    return kept_bytes + sum(
        size * with_staging(number, len(places) * spec.num_experts, num_staging)
        for (size, places), number in zip(classes, numbers, strict=True)
    )


@functools.lru_cache(maxsize=16)
def _classes_of(slot_bytes: tuple[int, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return each size with the places of its layers among all MoE layers."""
    places: dict[int, list[int]] = {}
    for place, size in enumerate(slot_bytes):
        places.setdefault(size, []).append(place)
    return tuple((size, tuple(each)) for size, each in places.items())
