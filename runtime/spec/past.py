"""What a model did before on this PC: how its tokens reused experts, and what its answers took."""

import dataclasses

from runtime.protocol.values import WeightFormat


@dataclasses.dataclass(frozen=True, slots=True)
class ReuseCounts:
    """How recently generated tokens of a model had used the experts that they needed.

    ``found[n]`` counts needs whose expert was the ``n``-th most recently used of its layer, from 0
    on. With ``s`` slots a layer, least recently used leaving, the first ``s`` of them are hits.
    """

    found: tuple[int, ...]
    num_tokens: int

    def plus(self, other: "ReuseCounts", max_tokens: int) -> "ReuseCounts":
        """Return both together; what is old fades once it is more than ``max_tokens``.

        Counts of another number of experts belong to another model and are let go.
        """
        if len(other.found) != len(self.found):
            return other
        part = min(1.0, max_tokens / max(1, self.num_tokens))
        found = tuple(
            int(old * part) + new for old, new in zip(self.found, other.found, strict=True)
        )
        return ReuseCounts(found, int(self.num_tokens * part) + other.num_tokens)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """What an answer was forecast to take and took, by rates of decoding."""

    expert_format: WeightFormat
    device: str
    held_ratio: float
    """Part of all experts that RAM and device held under the plan."""
    kernels: str
    num_tokens: int
    modelled_tokens_per_s: float
    """What the cost model says for the hits that there were, knowing of no earlier runs."""
    predicted_tokens_per_s: float
    """What the person was told as the likeliest rate."""
    measured_tokens_per_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class Past:
    """Everything that is kept of one model, the oldest run first."""

    runs: tuple[PastRun, ...] = ()
    reuse: ReuseCounts | None = None


NO_PAST = Past()
"""Of a model that never ran here."""
