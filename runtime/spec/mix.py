"""A mix: experts and dense matrices of one copy in different formats."""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from runtime.protocol.model import MixedExperts
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import (
    STORED_BITS,
    ExpertId,
    ExpertLayout,
    ExpertPart,
    expert_layout,
    layout_in,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Counts = npt.NDArray[np.float32]
    """How much the error of each column of a matrix counts."""


class Importance(Protocol):
    """How much columns count, as a text has shown."""

    @property
    def identity(self) -> str:
        """A name that two different ones never share."""

    def of_expert(self, expert: ExpertId, part: ExpertPart) -> "Counts":
        """Return that of a matrix of an expert."""

    def of_dense(self, name: str) -> "Counts | None":
        """Return that of a dense matrix; None where all columns count the same."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mix:
    """Which format everything of a copy has."""

    experts: Mapping[ExpertId, WeightFormat]
    dense: Mapping[str, WeightFormat]
    """Of dense matrices by published name; those that are not named stay as published."""
    importance: Importance | None = None
    """What is heeded while weights are packed; None: all weights count the same."""

    @property
    def most_common(self) -> WeightFormat:
        """The format of the most experts; of equals the one of more bits."""
        counts = Counter(self.experts.values())
        return max(counts, key=lambda each: (counts[each], STORED_BITS[each]))

    @property
    def identity(self) -> str:
        """A name that two different mixes never share."""
        experts = sorted((each.layer, each.expert, name) for each, name in self.experts.items())
        heeded = self.importance.identity if self.importance else ""
        told = repr((experts, sorted(self.dense.items()), heeded))
        return hashlib.sha256(told.encode()).hexdigest()[:32]


MIX_FORMATS = (
    WeightFormat.Q2_G16,
    WeightFormat.Q3_G16,
    WeightFormat.Q4A_G32,
    WeightFormat.Q6_G32,
    WeightFormat.Q8_G32,
)
"""What a mix is made of, the fewest bits first."""


PartFormats = tuple[WeightFormat, ...]
"""Those of gate, up and down."""


def mixed_experts(
    layers: Iterable[Mapping[PartFormats, int]], hidden_size: int, expert_width: int
) -> MixedExperts:
    """Return what experts take, so many of each MoE layer with these formats; there are some."""
    matrices: Counter[WeightFormat] = Counter()
    format_bytes: Counter[WeightFormat] = Counter()
    records_bytes, slot_bytes = 0, []
    for numbers in layers:
        sizes = []
        for formats, number in numbers.items():
            layout = layout_in(formats, hidden_size, expert_width)
            records_bytes += layout.record_bytes * number
            sizes.append(layout.record_bytes)
            for matrix in layout.parts.values():
                matrices[matrix.format] += number
                format_bytes[matrix.format] += number * matrix.num_bytes
        slot_bytes.append(max(sizes))
    order = sorted(matrices, key=lambda each: (-matrices[each], -STORED_BITS[each], each))
    num_weights = matrices.total() * hidden_size * expert_width
    return MixedExperts(
        format_bytes={each: format_bytes[each] for each in order},
        bits=8 * format_bytes.total() / num_weights,
        records_bytes=records_bytes,
        slot_bytes=slot_bytes,
    )


def layouts_of(
    formats: Iterable[WeightFormat], hidden_size: int, expert_width: int
) -> dict[WeightFormat, ExpertLayout]:
    """Return how an expert lies in each of some formats."""
    return {each: expert_layout(each, hidden_size, expert_width) for each in sorted(set(formats))}
