"""Which plans are offered, and under which names."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.plan.choices import LEAST_SPEED, offered
from runtime.plan.kinds import FEWEST_BITS, is_whole
from runtime.plan.planner import plan_kinds, plan_model
from runtime.plan.recommendation import recommend
from runtime.protocol.plan import PlacementPlan, PlanChoice, PlanKind
from runtime.protocol.sentences import reason_sentence
from runtime.protocol.values import Budgets, WeightFormat
from tests.support.plan_cases import GIB, facts, machine, spec

MODEL = spec()
PC = machine(total_gib=64, available_gib=60)
E, B, F, S = PlanChoice
EXACT, EIGHT, SIX, FOUR, THREE, TWO, _ = PlanKind


def plans(ram_bytes: int, prepared: tuple[WeightFormat, ...] = ()) -> list[PlacementPlan]:
    return plan_model(facts(MODEL, prepared=prepared), PC, Budgets(ram_bytes=ram_bytes))


def names(found: list[PlacementPlan]) -> dict[PlanKind, PlanChoice | None]:
    return {plan.kind: plan.choice for plan in found}


def needed(kind: PlanKind) -> int:
    """The budget from which on a kind stays in RAM whole."""
    found = plan_kinds(facts(MODEL), PC, Budgets(ram_bytes=50 * GIB))
    return next(plan.all_ram_bytes for plan in found if plan.kind is kind)


@pytest.mark.parametrize(
    ("ram_bytes", "expected"),
    [
        # All of it stays in memory: what is less exact is only faster.
        (needed(EXACT), {EXACT: E, EIGHT: B, FOUR: S}),
        # The published weights need the drive, and what does not need it is recommended.
        (needed(EIGHT), {EXACT: E, EIGHT: F, FOUR: S}),
        (needed(SIX), {EXACT: E, EIGHT: B, SIX: F, FOUR: S}),
        (needed(FOUR), {EXACT: E, SIX: B, FOUR: F}),
        # Four bits need it too: the names tell apart what is best and what needs no drive.
        (needed(THREE), {EXACT: E, FOUR: B, THREE: F}),
        (needed(TWO), {EXACT: E, FOUR: B, TWO: F}),
        (needed(TWO) * 2 // 3, {EXACT: E, FOUR: B, TWO: S}),
    ],
)
def test_names_by_what_stays_in_memory(
    ram_bytes: int, expected: dict[PlanKind, PlanChoice]
) -> None:
    found = plans(ram_bytes)
    assert names(found) == expected
    fitting = [plan for plan in found if plan.choice is F]
    assert all(map(is_whole, fitting))
    for plan in found:
        assert plan.forecast is not None
        assert plan.forecast.prompt_tokens_per_s > 0
        assert plan.forecast.decode_tokens_per_s > 0
        assert plan.forecast.joules_per_token > 0
        assert sum(share.bytes for share in plan.tiers) > 0
        says = [reason_sentence(reason) for reason in plan.reasons]
        assert any("published" in text or "answers" in text for text in says)
        assert len(plan.recommended_because) == (2 if plan.kind is recommend(found) else 0)


def test_a_model_that_nothing_can_load_has_two_names_and_why() -> None:
    found = plans(1)
    assert names(found) == {EXACT: E, TWO: S}
    assert all(plan.problem is not None for plan in found)


def test_a_model_used_as_it_is_has_one() -> None:
    found = plan_model(facts(MODEL, stored_format=WeightFormat.MXFP4), PC, Budgets())
    assert names(found) == {EXACT: E}


def test_fewest_bits_are_smallest_where_nothing_else_runs() -> None:
    large = spec(num_experts=8, expert_width=14336, hidden_size=4096, num_layers=32, top_k=2)
    for gib in range(4, 24):
        here = machine(total_gib=gib + 2, available_gib=gib)
        found = plan_model(facts(large), here, Budgets())
        if [plan.kind for plan in found if plan.problem is None] == [TWO]:
            assert names(found) == {EXACT: E, TWO: S}
            assert recommend(found) is TWO
            return
    pytest.fail("no PC on which two bits alone run")


def test_written_copies_are_offered_without_a_name_and_may_be_recommended() -> None:
    written = (WeightFormat.Q8_G32, WeightFormat.Q6_G32, WeightFormat.Q2_G16)
    found = plans(needed(EXACT), written)
    assert names(found) == {EXACT: E, EIGHT: B, SIX: None, FOUR: S, TWO: None}
    assert {plan.kind: plan.needs_prepare for plan in found} == {
        EXACT: False, EIGHT: False, SIX: False, FOUR: True, TWO: False,
    }  # fmt: skip
    few = plans(needed(TWO), (WeightFormat.Q2_G16,))
    assert recommend(few) is TWO
    assert names(few) == {EXACT: E, EIGHT: B, TWO: F}


def test_a_wanted_kind_has_a_plan_and_no_name() -> None:
    found = plan_model(facts(MODEL), PC, Budgets(ram_bytes=needed(EXACT)), wanted=THREE)
    assert names(found) == {EXACT: E, EIGHT: B, FOUR: S, THREE: None}


def test_nothing_is_offered_of_a_model_that_cannot_run() -> None:
    assert offered([]) == []


@settings(max_examples=40)
@given(
    free=st.floats(1, 80),
    drive_gb_per_s=st.sampled_from([0.1, 0.5, 3.0, 12.0]),
    written=st.sets(st.sampled_from([WeightFormat.Q8_G32, WeightFormat.Q6_G32])),
    stored=st.sampled_from([WeightFormat.BF16, WeightFormat.Q8_G32]),
    top_k=st.sampled_from([2, 8]),
)
def test_up_to_four_names_no_two_alike_and_the_recommended_has_one(
    free: float,
    drive_gb_per_s: float,
    written: set[WeightFormat],
    stored: WeightFormat,
    top_k: int,
) -> None:
    here = machine(total_gib=96, available_gib=free, drive_gb_per_s=drive_gb_per_s)
    known = facts(spec(top_k=top_k), stored_format=stored, prepared=tuple(written))
    every = plan_kinds(known, here, Budgets())
    found = plan_model(known, here, Budgets())
    assert [plan.kind for plan in found] == [
        plan.kind for plan in every if plan.kind in names(found)
    ]
    named = [plan.choice for plan in found if plan.choice is not None]
    assert named[0] is E
    assert len(set(named)) == len(named) <= 4
    assert {plan.kind for plan in every if not plan.needs_prepare} <= set(names(found))
    chosen = recommend(every)
    assert chosen is None or names(found)[chosen] is not None
    fits = next((plan for plan in found if plan.choice is F), None)
    whole = [plan.kind for plan in every if is_whole(plan)]
    if fits is not None:
        assert fits.kind is whole[0]
    balanced = next((plan for plan in found if plan.choice is B), None)
    if balanced is not None and balanced.kind is not chosen:
        rates = [
            plan.forecast.decode_tokens_per_s
            for plan in every[1:]
            if plan.forecast is not None and plan.kind not in FEWEST_BITS
        ]
        assert balanced.forecast is not None
        assert balanced.forecast.decode_tokens_per_s >= LEAST_SPEED * max(rates)
    without = [msgspec.structs.replace(plan, choice=None, recommended_because=[]) for plan in found]
    assert without == [plan for plan in every if plan.kind in names(found)]
