"""Everything that inspecting one folder found, for those inside the runtime."""

import dataclasses
from collections.abc import Mapping

from runtime.protocol.model import ModelReport
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart, TensorEntry

ExpertTensors = Mapping[ExpertId, Mapping[ExpertPart, TensorEntry]]


@dataclasses.dataclass(frozen=True, slots=True)
class Inspection:
    """The report for the person, and the places of all tensors for the store.

    ``spec`` is None if the config could not be understood. ``tensors`` and ``experts`` are complete
    exactly if ``report.problems`` is empty; otherwise they hold what was found.
    """

    report: ModelReport
    spec: ModelSpec | None
    tensors: Mapping[str, TensorEntry]
    """Dense tensors by published name."""
    experts: ExpertTensors
