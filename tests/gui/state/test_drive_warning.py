"""When a person is warned about the drive, and what is proposed."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.graphs.series import total
from app.state.drive_warning import (
    MAX_WAIT_RATIO,
    MIN_TOKENS,
    RELEASE,
    DriveUse,
    RemedyKind,
    best_remedies,
    is_too_much,
    use_of_answer,
    use_of_totals,
)
from runtime.protocol.plan import PlacementPlan, PlanKind
from tests.support.drive_values import answer_with, plan_that_reads, sample_with
from tests.support.window_values import some_error, some_plan

AMOUNTS = st.floats(1, 1e12)
USES = st.builds(
    DriveUse,
    num_tokens=st.integers(0, 1000),
    drive_bytes=AMOUNTS,
    wait_s=st.floats(0, 100),
    total_s=st.floats(0, 100),
    drive_j=st.floats(0, 1e6),
    total_j=st.floats(0, 1e6),
)
RATIOS = st.floats(0.01, 1)


def test_use_of_an_answer_has_its_ratios_and_costs() -> None:
    use = use_of_answer(answer_with(0.62, drive_j=30, rest_j=70))
    assert use.wait_ratio == pytest.approx(0.62)
    assert use.energy_ratio == pytest.approx(0.3)
    assert use.gb_per_100_tokens == pytest.approx(20.0)
    assert use.wh_per_1000_tokens == pytest.approx(100 / 3600 / 20 * 1000)
    assert use.cost_per_1000_tokens(0.30) == pytest.approx(100 / 3.6e6 / 20 * 1000 * 0.30)


def test_use_of_nothing_is_zero() -> None:
    use = use_of_totals(total([]))
    ratios = (use.wait_ratio, use.energy_ratio, use.gb_per_100_tokens, use.wh_per_1000_tokens)
    assert (*ratios, use.cost_per_1000_tokens(1.0)) == (0, 0, 0, 0, 0)


def test_use_of_samples_is_their_sum() -> None:
    use = use_of_totals(total([sample_with(0.2), sample_with(0.6)]))
    assert (use.num_tokens, use.drive_bytes) == (20, 2_000_000)
    assert use.wait_ratio == pytest.approx(0.4)


def test_too_much_is_waiting_for_the_larger_part_or_energy_above_the_limit() -> None:
    assert is_too_much(use_of_answer(answer_with(0.51)), 0.25)
    assert not is_too_much(use_of_answer(answer_with(0.49)), 0.25)
    assert is_too_much(use_of_answer(answer_with(0.1, drive_j=26, rest_j=74)), 0.25)
    assert not is_too_much(use_of_answer(answer_with(0.1, drive_j=24, rest_j=76)), 0.25)


@given(USES, RATIOS)
def test_too_much_holds_at_least_as_long_as_it_takes_to_begin(use: DriveUse, limit: float) -> None:
    if is_too_much(use, limit):
        assert is_too_much(use, limit, was_too_much=True)


@given(USES, RATIOS, st.booleans())
def test_too_much_few_tokens_change_nothing(use: DriveUse, limit: float, was: bool) -> None:
    few = dataclasses.replace(use, num_tokens=min(use.num_tokens, MIN_TOKENS - 1))
    assert is_too_much(few, limit, was_too_much=was) is was


@given(USES, RATIOS)
def test_too_much_ends_only_when_both_are_clearly_below(use: DriveUse, limit: float) -> None:
    if use.num_tokens < MIN_TOKENS:
        return
    is_low = use.wait_ratio <= MAX_WAIT_RATIO * RELEASE and use.energy_ratio <= limit * RELEASE
    assert is_too_much(use, limit, was_too_much=True) is not is_low


@given(st.lists(st.floats(0.42, 0.49), max_size=30), st.booleans())
def test_too_much_between_the_two_limits_never_flickers(waits: list[float], was: bool) -> None:
    state = was
    for wait in waits:
        state = is_too_much(use_of_answer(answer_with(wait)), 0.25, was_too_much=state)
        assert state is was


def test_from_ram_takes_the_time_without_waiting_and_what_ram_takes_for_the_bytes() -> None:
    use = use_of_answer(answer_with(0.6, drive_j=10, rest_j=100)).from_ram
    assert (use.wait_ratio, use.drive_bytes, use.energy_ratio) == (0, 0, 0)
    assert use.total_s == pytest.approx(4.0)
    assert use.total_j == pytest.approx(100 * 0.4 + 0.074 * 10)
    assert use.wh_per_1000_tokens == pytest.approx(40.74 / 3600 / 20 * 1000)


@given(USES)
def test_from_ram_is_never_more_than_it_was(use: DriveUse) -> None:
    assert 0 <= use.from_ram.total_j <= max(use.total_j, use.drive_j)


def test_too_much_is_not_said_where_the_cache_of_the_system_answered() -> None:
    cached = dataclasses.replace(use_of_answer(answer_with(0.9)), drive_bytes=0)
    assert not is_too_much(cached, 0.25)
    assert not is_too_much(cached, 0.25, was_too_much=True)


def kinds_and_plans(
    now: PlacementPlan, plans: list[PlacementPlan]
) -> list[tuple[RemedyKind, PlacementPlan | None]]:
    return [(remedy.kind, remedy.plan) for remedy in best_remedies(now, plans, plans)]


def test_remedies_more_memory_comes_first_where_it_saves_half() -> None:
    now = plan_that_reads(100)
    more = plan_that_reads(40, rate=12)
    lower = plan_that_reads(0, PlanKind.FOUR_BIT, rate=30)
    assert kinds_and_plans(now, [lower, more]) == [
        (RemedyKind.MORE_MEMORY, more),
        (RemedyKind.LOWER_BITS, lower),
    ]


def test_remedies_lower_bits_come_first_where_memory_saves_little_and_they_are_faster() -> None:
    now = plan_that_reads(100)
    more = plan_that_reads(70, rate=12)
    slow = plan_that_reads(60, PlanKind.EIGHT_BIT, rate=14)
    fast = plan_that_reads(10, PlanKind.FOUR_BIT, rate=30)
    assert kinds_and_plans(now, [more, slow, fast]) == [
        (RemedyKind.LOWER_BITS, fast),
        (RemedyKind.MORE_MEMORY, more),
    ]
    better = plan_that_reads(70, rate=31)
    assert kinds_and_plans(now, [better, fast])[0] == (RemedyKind.MORE_MEMORY, better)
    assert kinds_and_plans(now, [slow, fast]) == [
        (RemedyKind.LOWER_BITS, fast),
        (RemedyKind.LOWER_BITS, slow),
    ]
    smaller = (RemedyKind.SMALLER_MODEL, None)
    assert kinds_and_plans(now, [more]) == [(RemedyKind.MORE_MEMORY, more), smaller]


def test_remedies_of_fewer_bits_are_those_under_the_budgets_in_force() -> None:
    now = plan_that_reads(100)
    roomy = [plan_that_reads(0, rate=40), plan_that_reads(0, PlanKind.FOUR_BIT, rate=50)]
    same = [plan_that_reads(90), plan_that_reads(30, PlanKind.FOUR_BIT, rate=20)]
    found = best_remedies(now, roomy, same)
    assert [remedy.plan for remedy in found] == [roomy[0], same[1]]


def test_remedies_never_go_back_to_more_bits() -> None:
    now = plan_that_reads(100, PlanKind.FOUR_BIT)
    plans = [plan_that_reads(0), plan_that_reads(0, PlanKind.EIGHT_BIT)]
    assert kinds_and_plans(now, plans) == [(RemedyKind.SMALLER_MODEL, None)]


def test_remedies_take_no_plan_that_cannot_be_carried_out() -> None:
    now = plan_that_reads(100)
    broken = some_plan(PlanKind.FOUR_BIT, problem=some_error())
    assert kinds_and_plans(now, [broken, some_plan()]) == [(RemedyKind.SMALLER_MODEL, None)]
    less = plan_that_reads(5)
    assert kinds_and_plans(some_plan(), [less])[0] == (RemedyKind.MORE_MEMORY, less)


PLANS = st.builds(
    plan_that_reads,
    st.floats(0, 1000),
    st.sampled_from(list(PlanKind)),
    rate=st.floats(0.1, 100),
)


@given(PLANS, st.lists(PLANS, max_size=5))
def test_remedies_always_read_less(now: PlacementPlan, plans: list[PlacementPlan]) -> None:
    remedies = best_remedies(now, plans, plans)
    assert 1 <= len(remedies) <= 2
    assert now.forecast is not None
    for remedy in remedies:
        if remedy.plan is None:
            assert remedy.kind is RemedyKind.SMALLER_MODEL
            assert remedy is remedies[-1]
        else:
            assert remedy.plan in plans
            assert remedy.plan.forecast is not None
            assert remedy.plan.forecast.drive_bytes_per_token < now.forecast.drive_bytes_per_token
            is_same = remedy.plan.kind is now.kind
            assert is_same is (remedy.kind is RemedyKind.MORE_MEMORY)
