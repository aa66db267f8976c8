"""Which of the choices to take, and why in two sentences."""

from collections.abc import Sequence

import msgspec

from runtime.plan.kinds import FEWEST_BITS
from runtime.protocol.hub import HubOutlook
from runtime.protocol.plan import PlacementPlan, PlanKind, Reason, ReasonCode
from runtime.protocol.values import Forecast, Tier

_LEAST_BITS, _MOST_BITS = 4.0, 9.0
"""Of a weight in files of a model: what is worth its loss, and what nobody tells from the whole."""
MAX_DRIVE_RATIO = 0.05
"""Part of a token's time that waiting for the drive may take without being worth fewer bits."""


def recommend(plans: Sequence[PlacementPlan]) -> PlanKind | None:
    """Return the kind to take: the most exact one that hardly needs the drive, else the fastest."""
    found = _recommended(plans)
    return None if found is None else found.kind


def needs_drive(plan: PlacementPlan) -> bool:
    """Whether answers of a plan that can be loaded wait for the drive again and again."""
    return _merit(plan) is ReasonCode.BEST_BY_SPEED


def advise(outlooks: Sequence[HubOutlook], bits: Sequence[float]) -> int | None:
    """Return which of several files of one model to take, by the bits of a weight in each.

    The most exact one that hardly needs the drive, of those that eight bits hold; else the fastest,
    with fewer than four bits only where nothing else runs.
    """
    found = [index for index, each in enumerate(outlooks) if each.forecast is not None]
    few = [index for index in found if bits[index] <= _MOST_BITS]
    calm = [index for index in few if not outlooks[index].is_on_drive]
    good = [index for index in calm if bits[index] >= _LEAST_BITS]
    if good:
        return max(good, key=lambda index: bits[index])
    able = [index for index in few if bits[index] >= _LEAST_BITS] or few or found
    return max(able, key=lambda index: _rate(outlooks[index]), default=None)


def explained(plans: Sequence[PlacementPlan]) -> list[PlacementPlan]:
    """Return the plans, the recommended one with its two reasons; the most exact comes first."""
    chosen = _recommended(plans)
    if chosen is None:
        return list(plans)
    because = [Reason(code=_merit(chosen)), _beside(chosen, plans)]
    return [
        msgspec.structs.replace(plan, recommended_because=because) if plan is chosen else plan
        for plan in plans
    ]


def _recommended(plans: Sequence[PlacementPlan]) -> PlacementPlan | None:
    possible = [plan for plan in plans if plan.problem is None]
    # So few bits change answers much: only where nothing else runs, or somebody had them written.
    possible = [plan for plan in possible if not _is_last_resort(plan)] or possible
    for plan in possible:
        if _merit(plan) is not ReasonCode.BEST_BY_SPEED:
            return plan
    return max(possible, key=_speed, default=None)


def _is_last_resort(plan: PlacementPlan) -> bool:
    return plan.needs_prepare and plan.kind in FEWEST_BITS


def _beside(chosen: PlacementPlan, plans: Sequence[PlacementPlan]) -> Reason:
    """Return what the neighbouring choice would be like: the more exact one, else the smaller."""
    index = plans.index(chosen)
    if index:
        other = plans[index - 1]
        if other.problem is not None:
            return Reason(
                code=ReasonCode.MORE_EXACT_TOO_LARGE,
                parameters={"needed_bytes": other.min_ram_bytes},
            )
        return Reason(
            code=ReasonCode.MORE_EXACT_SLOWER,
            parameters={
                "bytes_per_token": _forecast(other).drive_bytes_per_token,
                **_rates(chosen, other),
            },
        )
    smaller = [plan for plan in plans[1:] if plan.problem is None]
    if not smaller:
        return Reason(code=ReasonCode.ONLY_CHOICE)
    return Reason(code=ReasonCode.SMALLER_LESS_EXACT, parameters=_rates(chosen, smaller[0]))


def _rates(chosen: PlacementPlan, other: PlacementPlan) -> dict[str, str | int | float]:
    return {
        "tokens_per_s": round(_forecast(other).decode_tokens_per_s, 2),
        "own_tokens_per_s": round(_forecast(chosen).decode_tokens_per_s, 2),
    }


def _merit(plan: PlacementPlan) -> ReasonCode:
    """Return why a plan would be taken before all that are less exact."""
    if not plan.slots_per_layer:
        return ReasonCode.WHOLE_IN_MEMORY
    if all(share.tier is not Tier.DRIVE for share in plan.tiers):
        return ReasonCode.BEST_IN_MEMORY
    forecast = _forecast(plan)
    drive_ratio = forecast.drive_s_per_token * forecast.decode_tokens_per_s / forecast.speed_ratio
    if drive_ratio <= MAX_DRIVE_RATIO:
        return ReasonCode.BEST_NEARLY_IN_MEMORY
    return ReasonCode.BEST_BY_SPEED


def _rate(outlook: HubOutlook) -> float:
    return outlook.forecast.decode_tokens_per_s_low if outlook.forecast is not None else 0.0


def _speed(plan: PlacementPlan) -> float:
    return _forecast(plan).decode_tokens_per_s_low


def _forecast(plan: PlacementPlan) -> Forecast:
    assert plan.forecast is not None, "a plan that can be loaded has a forecast"
    return plan.forecast
