"""Which kinds of plans a model has."""

from collections.abc import Sequence

from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Tier, WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.tensors import PLAIN_FORMATS, STORED_BITS

FORMAT_OF_KIND = {
    PlanKind.EIGHT_BIT: WeightFormat.Q8_G32,
    PlanKind.SIX_BIT: WeightFormat.Q6_G32,
    PlanKind.FOUR_BIT: WeightFormat.Q4A_G32,
    PlanKind.THREE_BIT: WeightFormat.Q3_G16,
    PlanKind.TWO_BIT: WeightFormat.Q2_G16,
}
_ALWAYS_OFFERED = (PlanKind.EIGHT_BIT, PlanKind.FOUR_BIT)
"""The other kinds are offered where such a copy was written, and those of fewest bits where nothing
else stays in memory."""
FEWEST_BITS = (PlanKind.THREE_BIT, PlanKind.TWO_BIT)


def smaller_kinds(facts: ModelFacts, stored_format: WeightFormat) -> list[PlanKind]:
    """Return the kinds that take fewer bits than were published, the most exact first."""
    if facts.report.gguf_kinds or not facts.spec.moe_layers:
        # Used where they lie, in whatever format they become.
        return []
    if stored_format not in PLAIN_FORMATS and stored_format is not WeightFormat.Q8_G32:
        return []
    written = {copy.expert_format for copy in facts.report.prepared if not copy.mix_bits}
    kinds = [
        kind
        for kind, expert_format in FORMAT_OF_KIND.items()
        if expert_format is not stored_format
        and (kind in _ALWAYS_OFFERED or expert_format in written)
    ]
    mix_bits = max((copy.mix_bits for copy in facts.report.prepared), default=0.0)
    if mix_bits:
        smaller = (kind for kind in kinds if STORED_BITS[FORMAT_OF_KIND[kind]] < mix_bits)
        first = next(smaller, None)
        kinds.insert(len(kinds) if first is None else kinds.index(first), PlanKind.MIXED)
    return kinds


def has_kind(facts: ModelFacts, stored_format: WeightFormat, kind: PlanKind) -> bool:
    """Whether a kind exists for a model, offered on every PC or on small ones alone."""
    kinds = smaller_kinds(facts, stored_format)
    return kind is PlanKind.EXACT or kind in kinds or (bool(kinds) and kind in FEWEST_BITS)


def is_whole(plan: PlacementPlan) -> bool:
    """Whether a plan can be loaded and keeps every expert in memory."""
    is_held = all(share.tier is not Tier.DRIVE for share in plan.tiers)
    return plan.problem is None and is_held


def lacks_room(plans: Sequence[PlacementPlan]) -> bool:
    """Whether kinds of fewer bits than usual are worth a look: four are too many for the memory."""
    four = next((plan for plan in plans if plan.kind is PlanKind.FOUR_BIT), None)
    return four is not None and not is_whole(four)
