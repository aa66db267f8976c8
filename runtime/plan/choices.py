"""Which plans are offered, and under which of four names."""

from collections.abc import Sequence

import msgspec

from runtime.plan.kinds import FEWEST_BITS, is_whole
from runtime.plan.recommendation import recommend
from runtime.protocol.plan import PlacementPlan, PlanChoice, PlanKind

LEAST_SPEED = 0.5
"""Part of the speed of the fastest form of four bits and more that a balanced one has."""


def offered(plans: Sequence[PlacementPlan], wanted: PlanKind | None = None) -> list[PlacementPlan]:
    """Return the plans with a name, of written copies and of a wanted kind, the most exact first.

    ``plans`` are of all kinds that a model could have, the published weights first. No two have
    one name. What is recommended has one.
    """
    names = _names(plans)
    return [
        msgspec.structs.replace(plan, choice=names.get(plan.kind))
        for plan in plans
        if plan.kind in names or plan.kind is wanted or not plan.needs_prepare
    ]


def _names(plans: Sequence[PlacementPlan]) -> dict[PlanKind, PlanChoice]:
    if not plans:
        return {}
    exact, smaller = plans[0], plans[1:]
    names = {exact.kind: PlanChoice.EXACT}
    if not smaller:
        return names
    fitting = None if is_whole(exact) else next(filter(is_whole, smaller), None)
    if fitting is not None:
        names[fitting.kind] = PlanChoice.FITS_IN_RAM
    recommended = recommend(plans)
    if recommended is not None and recommended not in FEWEST_BITS:
        names.setdefault(recommended, PlanChoice.BALANCED)
    names.setdefault(_smallest(smaller, recommended), PlanChoice.SMALLEST)
    if PlanChoice.BALANCED not in names.values():
        balanced = _balanced(smaller)
        if balanced is not None:
            names.setdefault(balanced, PlanChoice.BALANCED)
    return names


def _smallest(smaller: Sequence[PlacementPlan], recommended: PlanKind | None) -> PlanKind:
    """Return the first kind of four bits or fewer that stays in memory; else the last kind.

    Where nothing but three or two bits can be recommended, it is those.
    """
    if recommended in FEWEST_BITS:
        return recommended
    few = [plan for plan in smaller if plan.kind in (PlanKind.FOUR_BIT, *FEWEST_BITS)]
    return next(filter(is_whole, few), few[-1]).kind


def _balanced(smaller: Sequence[PlacementPlan]) -> PlanKind | None:
    """Return the most exact kind that is not much slower than the fastest; None if none can be."""
    rates = {
        plan.kind: plan.forecast.decode_tokens_per_s
        for plan in smaller
        if plan.forecast is not None and plan.kind not in FEWEST_BITS
    }
    least = LEAST_SPEED * max(rates.values(), default=0.0)
    return next((kind for kind, rate in rates.items() if rate >= least), None)
