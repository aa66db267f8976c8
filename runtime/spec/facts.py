"""What the planner knows of a model."""

import dataclasses

from runtime.protocol.model import ModelReport
from runtime.spec.model import ModelSpec


@dataclasses.dataclass(frozen=True, slots=True)
class ModelFacts:
    """One inspected model without the places of its tensors."""

    report: ModelReport
    spec: ModelSpec
    dense_ram_bytes: int
    """What all dense tensors take in RAM: ``footprint.dense_bytes`` of their entries."""
