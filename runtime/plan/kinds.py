"""Which kinds of plans a model could have."""

from runtime.protocol.model import PreparedCopy
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
FEWEST_BITS = (PlanKind.THREE_BIT, PlanKind.TWO_BIT)
"""Kinds that change answers much."""


def smaller_kinds(facts: ModelFacts, stored_format: WeightFormat) -> list[PlanKind]:
    """Return the kinds that take fewer bits than were published, the most exact first.

    A mix is one of them where one was written.
    """
    if facts.report.gguf_kinds or not facts.spec.moe_layers:
        # Used where they lie, in whatever format they become.
        return []
    if stored_format not in PLAIN_FORMATS and stored_format is not WeightFormat.Q8_G32:
        return []
    kinds = [kind for kind, each in FORMAT_OF_KIND.items() if each is not stored_format]
    mix_bits = max((copy.mix_bits for copy in mixes_of(facts)), default=0.0)
    if mix_bits:
        smaller = (kind for kind in kinds if STORED_BITS[FORMAT_OF_KIND[kind]] < mix_bits)
        first = next(smaller, None)
        kinds.insert(len(kinds) if first is None else kinds.index(first), PlanKind.MIXED)
    return kinds


def mixes_of(facts: ModelFacts) -> list[PreparedCopy]:
    """Return the written copies of mixed bits that have as many MoE layers as the model."""
    num_layers = len(facts.spec.moe_layers)
    copies = facts.report.prepared
    return [copy for copy in copies if copy.mix_bits and len(copy.slot_bytes) == num_layers]


def has_kind(facts: ModelFacts, stored_format: WeightFormat, kind: PlanKind) -> bool:
    """Whether a kind exists for a model."""
    return kind is PlanKind.EXACT or kind in smaller_kinds(facts, stored_format)


def is_whole(plan: PlacementPlan) -> bool:
    """Whether a plan can be loaded and keeps every expert in memory."""
    is_held = all(share.tier is not Tier.DRIVE for share in plan.tiers)
    return plan.problem is None and is_held
