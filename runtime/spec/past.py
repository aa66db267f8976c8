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


SEGMENT_TOKENS = 16
"""Tokens in a row for which routing is judged."""
CACHE_RATIOS = (1, 2, 3)
"""Slots of a layer that are judged, in experts that a token uses."""


@dataclasses.dataclass(frozen=True, slots=True)
class RoutingCounts:
    """How alike the experts of tokens in a row are, counted in some layers of a model.

    ``uses[n]`` counts experts, of each ``SEGMENT_TOKENS`` tokens in a row and each layer, that
    ``n`` of these tokens chose. ``hits[i]`` counts needs that a cache of ``CACHE_RATIOS[i]`` times
    ``top_k`` slots held which lets go whom the next ``SEGMENT_TOKENS`` tokens need least; of
    ``num_needs`` in all.
    """

    uses: tuple[int, ...]
    hits: tuple[int, ...]
    num_needs: int
    num_tokens: int

    def plus(self, other: "RoutingCounts", max_tokens: int) -> "RoutingCounts":
        """Return both together; what is old fades once it is more than ``max_tokens``."""
        part = min(1.0, max_tokens / max(1, self.num_tokens))

        def faded(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(int(each * part) + more for each, more in zip(old, new, strict=True))

        return RoutingCounts(
            faded(self.uses, other.uses),
            faded(self.hits, other.hits),
            int(self.num_needs * part) + other.num_needs,
            int(self.num_tokens * part) + other.num_tokens,
        )


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
    routing: RoutingCounts | None = None


NO_PAST = Past()
"""Of a model that never ran here."""
