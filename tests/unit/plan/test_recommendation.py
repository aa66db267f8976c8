"""Which choice is recommended, and the two sentences that say why."""

import msgspec
import pytest

from runtime.plan.planner import plan_model
from runtime.plan.recommendation import MAX_DRIVE_RATIO, explained, needs_drive, recommend
from runtime.protocol.plan import PlacementPlan, PlanKind, ReasonCode
from runtime.protocol.sentences import reason_sentence, template
from runtime.protocol.values import Budgets, Tier, WeightFormat
from runtime.protocol.wording import places
from tests.support.plan_cases import GIB, facts, machine, spec

MODEL = facts(spec())
HUGE = machine(total_gib=4096, available_gib=4000)


def planned(ram_bytes: int | None = None) -> list[PlacementPlan]:
    return plan_model(MODEL, HUGE, Budgets(ram_bytes=ram_bytes))


def because(plans: list[PlacementPlan]) -> tuple[PlanKind, list[ReasonCode]]:
    (chosen,) = [plan for plan in plans if plan.recommended_because]
    assert recommend(plans) is chosen.kind
    for reason in chosen.recommended_because:
        assert places(template(reason.code)) == set(reason.parameters)
        assert "?" not in reason_sentence(reason)
    return chosen.kind, [reason.code for reason in chosen.recommended_because]


def test_all_in_memory_is_compared_with_the_smaller_choice() -> None:
    assert because(planned()) == (
        PlanKind.EXACT,
        [ReasonCode.BEST_IN_MEMORY, ReasonCode.SMALLER_LESS_EXACT],
    )


def test_smaller_choice_in_memory_is_compared_with_the_more_exact_one() -> None:
    eight = planned()[1]
    assert because(planned(eight.all_ram_bytes)) == (
        PlanKind.EIGHT_BIT,
        [ReasonCode.BEST_IN_MEMORY, ReasonCode.MORE_EXACT_SLOWER],
    )


def test_choice_that_hardly_waits_for_the_drive_comes_before_fewer_bits() -> None:
    eight = planned()[1]
    plans = planned(eight.all_ram_bytes - GIB)
    assert because(plans) == (
        PlanKind.EIGHT_BIT,
        [ReasonCode.BEST_NEARLY_IN_MEMORY, ReasonCode.MORE_EXACT_SLOWER],
    )
    forecast = plans[1].forecast
    assert forecast is not None
    assert 0 < forecast.drive_s_per_token * forecast.decode_tokens_per_s <= MAX_DRIVE_RATIO
    assert any(share.tier is Tier.DRIVE for share in plans[1].tiers)
    assert not needs_drive(plans[1])


def test_choice_by_speed_where_all_wait_for_the_drive() -> None:
    four = planned()[2]
    assert needs_drive(planned(four.min_ram_bytes)[2])
    kind, codes = because(planned((four.min_ram_bytes + four.all_ram_bytes) // 3))
    assert (kind, codes[0]) == (PlanKind.FOUR_BIT, ReasonCode.BEST_BY_SPEED)


def test_more_exact_choice_that_cannot_be_loaded_is_named_with_what_it_needs() -> None:
    plans = planned(planned()[2].min_ram_bytes)
    exact, four = plans[:2]
    assert because(plans) == (
        PlanKind.FOUR_BIT,
        [ReasonCode.BEST_BY_SPEED, ReasonCode.MORE_EXACT_TOO_LARGE],
    )
    (reason,) = four.recommended_because[1:]
    assert reason.parameters == {"needed_bytes": exact.min_ram_bytes}


def test_only_choice_says_so() -> None:
    plans = plan_model(facts(spec(), stored_format=WeightFormat.MXFP4), HUGE, Budgets())
    assert because(plans) == (PlanKind.EXACT, [ReasonCode.BEST_IN_MEMORY, ReasonCode.ONLY_CHOICE])


def test_model_without_experts_is_told_as_a_whole() -> None:
    dense = spec(num_layers=4, num_dense_layers=4, num_experts=0, expert_width=0)
    plans = plan_model(facts(dense), HUGE, Budgets())
    assert because(plans) == (PlanKind.EXACT, [ReasonCode.WHOLE_IN_MEMORY, ReasonCode.ONLY_CHOICE])
    assert not any("expert" in reason_sentence(each) for each in plans[0].recommended_because)


def test_earlier_runs_do_not_change_how_much_the_drive_counts() -> None:
    """The part of the drive is of the modelled time, which the speeds are scaled from."""
    eight = planned(planned()[1].all_ram_bytes - GIB)[1]
    assert eight.forecast is not None
    twice = msgspec.structs.replace(
        eight,
        forecast=msgspec.structs.replace(
            eight.forecast,
            decode_tokens_per_s=3 * eight.forecast.decode_tokens_per_s,
            speed_ratio=3.0,
        ),
    )
    (plan,) = explained([twice])
    assert plan.recommended_because[0].code is ReasonCode.BEST_NEARLY_IN_MEMORY


@pytest.mark.parametrize("ram_bytes", [1, GIB])
def test_nothing_that_can_be_loaded_has_no_recommendation(ram_bytes: int) -> None:
    plans = planned(ram_bytes)
    assert all(plan.problem is not None and not plan.recommended_because for plan in plans)
    assert recommend(plans) is None
