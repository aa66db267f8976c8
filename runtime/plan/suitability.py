"""How well a model suits offloading: how much tokens in a row choose the same experts.

The measures are those of "Not All Models Suit Expert Offloading" (arXiv:2505.16056).
"""

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from runtime.protocol.model import Suitability, SuitabilityRating
from runtime.protocol.values import HitsBasis
from runtime.spec.model import ModelSpec
from runtime.spec.past import RoutingCounts

MIN_OWN_TOKENS = 200
"""Generated tokens from which on a model's own routing counts."""
LEAST_WELL, LEAST_FAIRLY = 0.45, 0.33
"""Published models part there: 49 to 78 %, 37 to 38 %, 19 to 29 %."""
FAMILIES: Mapping[str, tuple[float, Sequence[float]]] = MappingProxyType(
    {
        "qwen3_moe": (0.521, (0.506, 0.728, 0.833)),
        "gpt_oss": (0.532, (0.484, 0.747, 0.879)),
        "deepseek_v2": (0.422, (0.381, 0.604, 0.740)),
        "olmoe": (0.509, ()),
        "mixtral": (0.493, ()),
    }
)
"""By ``model_type``: of recorded routing of a member (docs/decisions/0367-suitability.md); of the
last two the published segment ratio alone."""
_ALIKE = {"qwen3_vl_moe": "qwen3_moe", "deepseek_v3": "deepseek_v2"}


def suitability_of(spec: ModelSpec, routing: RoutingCounts | None = None) -> Suitability | None:
    """Return how well a model suits offloading; None where nothing is known.

    ``routing`` is what was counted while it answered here.
    """
    if not spec.moe_layers:
        return None
    if routing is not None and routing.num_tokens >= MIN_OWN_TOKENS and routing.num_needs:
        ratio = segment_ratio(routing.uses)
        return Suitability(
            rating=_rating(ratio),
            segment_ratio=ratio,
            hit_ratios=[hits / routing.num_needs for hits in routing.hits],
            basis=HitsBasis.OWN,
            num_tokens=routing.num_tokens,
        )
    known = FAMILIES.get(_ALIKE.get(spec.model_type, spec.model_type))
    if known is None:
        return None
    ratio, hit_ratios = known
    return Suitability(rating=_rating(ratio), segment_ratio=ratio, hit_ratios=list(hit_ratios))


def segment_ratio(uses: Sequence[int]) -> float:
    """Return the segment routing best performance of counts as ``RoutingCounts.uses`` has them.

    All tokens of a segment are told to choose the experts that at least so many of them do; the
    number is the best one. What is told right counts as an F1 score, so 1 is all right.
    """
    length = len(uses) - 1
    chosen = list(itertools.accumulate(n * uses[n] for n in range(length, 0, -1)))
    told = list(itertools.accumulate(length * uses[n] for n in range(length, 0, -1)))
    most = chosen[-1]
    if not most:
        return 0.0
    return max(2 * right / (each + most) for right, each in zip(chosen, told, strict=True))


def _rating(ratio: float) -> SuitabilityRating:
    if ratio >= LEAST_WELL:
        return SuitabilityRating.WELL
    return SuitabilityRating.FAIRLY if ratio >= LEAST_FAIRLY else SuitabilityRating.BADLY
