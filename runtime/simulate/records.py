"""How many bytes each expert has, where records are of more than one size."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from runtime.simulate.hygiene import uses
from runtime.simulate.trace import Trace

LayerBytes = int | Sequence[int]
"""Bytes of each expert of a layer: one size for all, or a size for each."""


@dataclasses.dataclass(frozen=True, slots=True)
class RecordSizes:
    """Bytes of every expert. A slot of a layer holds any of its experts, so the largest one."""

    layers: tuple[tuple[int, ...], ...]
    """[layers][experts]."""

    def slot_bytes(self, layer: int) -> int:
        """Return the bytes of a slot of a layer."""
        return max(self.layers[layer])

    def groups(self) -> list[list[int]]:
        """Return the layers that may exchange slots: those whose slots are of one size."""
        slots = [self.slot_bytes(layer) for layer in range(len(self.layers))]
        return [
            [layer for layer, other in enumerate(slots) if other == size]
            for size in sorted(set(slots))
        ]

    def bytes_of(self, layer: int, counts: Sequence[int]) -> int:
        """Return the bytes of so many records of each expert of a layer."""
        return sum(size * count for size, count in zip(self.layers[layer], counts, strict=True))

    def needed(self, trace: Trace) -> tuple[int, ...]:
        """Return the bytes of all needs of each layer."""
        counts = uses(trace).tolist()
        return tuple(self.bytes_of(layer, counts[layer]) for layer in range(trace.num_layers))


def sizes_of(trace: Trace, record_bytes: Sequence[LayerBytes] | None) -> RecordSizes:
    """Return the sizes of a trace's experts; without any, each is of one byte.

    Raises ``ValueError`` if there are not as many as layers and experts, or some are below 1.
    """
    given = [1] * trace.num_layers if record_bytes is None else list(record_bytes)
    if len(given) != trace.num_layers:
        raise ValueError(f"sizes of {len(given)} layers, and {trace.num_layers} are replayed")
    found = []
    for layer in given:
        sizes = (layer,) * trace.num_experts if isinstance(layer, int) else tuple(layer)
        if len(sizes) != trace.num_experts:
            raise ValueError(f"{len(sizes)} sizes in a layer of {trace.num_experts} experts")
        if min(sizes) < 1 or max(sizes) > np.iinfo(np.int64).max:
            raise ValueError(f"{min(sizes)} to {max(sizes)} bytes of an expert")
        found.append(sizes)
    return RecordSizes(tuple(found))
