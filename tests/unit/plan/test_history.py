"""What earlier runs say: the newest of plans like this one, else of others, else nothing."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.plan.history import (
    FAR_BAND,
    NEAR_BAND,
    NUM_NEWEST,
    WIDEST,
    Setting,
    experience_of,
    held_ratio,
)
from runtime.plan.planner import plan_kinds, plan_model
from runtime.protocol.plan import PlanKind, Reason, ReasonCode
from runtime.protocol.sentences import reason_sentence, template
from runtime.protocol.values import Budgets, WeightFormat
from runtime.protocol.wording import places
from runtime.spec.past import Past, PastRun, ReuseCounts
from tests.support.plan_cases import GIB, facts, machine, spec

Reasons = dict[ReasonCode, dict[str, str | int | float]]
HALF = Setting(WeightFormat.Q4A_G32, "cpu", "native-avx2", 0.5)


def run(measured: float, modelled: float = 10.0, **changes: object) -> PastRun:
    plain = PastRun(
        expert_format=HALF.expert_format,
        device=HALF.device,
        held_ratio=HALF.held_ratio,
        kernels=HALF.kernels,
        num_tokens=100,
        modelled_tokens_per_s=modelled,
        predicted_tokens_per_s=12.0,
        measured_tokens_per_s=measured,
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def test_experience_is_the_median_of_the_newest_runs_under_plans_like_this() -> None:
    old = [run(1.0)] * NUM_NEWEST
    new = [run(7.0 + index) for index in range(NUM_NEWEST)]
    other = [run(30.0, held_ratio=1.0)] * 20
    known = experience_of([*old, *new, *other], HALF)
    assert known is not None
    assert known.speed_ratio == pytest.approx(1.1)
    assert known.measured_tokens_per_s == pytest.approx(11.0)
    assert known.predicted_tokens_per_s == 12.0
    assert (known.band, known.num_answers) == (NEAR_BAND, 2 * NUM_NEWEST)


def test_experience_of_other_budgets_counts_with_a_wider_band() -> None:
    known = experience_of([run(20.0, held_ratio=1.0)], HALF)
    assert known is not None
    assert (known.speed_ratio, known.band, known.num_answers) == (2.0, FAR_BAND, 0)


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [run(9.0, expert_format=WeightFormat.BF16)],
        [run(9.0, device="cuda:0")],
        [run(9.0, kernels="reference")],
    ],
)
def test_experience_of_another_way_to_run_is_none(runs: list[PastRun]) -> None:
    assert experience_of(runs, HALF) is None


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_experience_ratio_stays_within_reason(measured: float, modelled: float) -> None:
    known = experience_of([run(measured, modelled)], HALF)
    assert known is not None
    assert 1 / WIDEST <= known.speed_ratio <= WIDEST


def test_held_ratio_of_a_model_without_experts_is_all() -> None:
    assert held_ratio(0, 0) == 1
    assert held_ratio(1, 4) == 0.25


def known_reason(reasons: Reasons, code: ReasonCode) -> Reason:
    parameters = reasons[code]
    assert places(template(code)) == set(parameters)
    return Reason(code=code, parameters=parameters)


def test_plan_of_another_family_says_that_hits_are_assumed() -> None:
    known = facts(dataclasses.replace(spec(), model_type="mixtral"))
    plans = plan_model(known, machine(), Budgets(ram_bytes=12 * GIB))
    four = next(plan for plan in plans if plan.kind is PlanKind.FOUR_BIT)
    reasons = {reason.code: dict(reason.parameters) for reason in four.reasons}
    sentence = reason_sentence(known_reason(reasons, ReasonCode.HITS_ASSUMED))
    assert "as other models choose them" in sentence


def test_plan_says_what_the_model_did_before() -> None:
    of = spec()
    budgets = Budgets(ram_bytes=12 * GIB)
    here = machine()

    def planned(past: Past) -> tuple[Reasons, float]:
        plans = plan_kinds(facts(of), here, budgets, past=past)
        four = next(plan for plan in plans if plan.kind is PlanKind.FOUR_BIT)
        assert four.forecast is not None
        reasons = {reason.code: dict(reason.parameters) for reason in four.reasons}
        return reasons, four.forecast.decode_tokens_per_s

    reasons, modelled = planned(Past())
    assert ReasonCode.HITS_FROM_FAMILY in reasons
    assert ReasonCode.RAN_BEFORE not in reasons
    plans = plan_model(facts(of), here, budgets)
    plan = next(each for each in plans if each.kind is PlanKind.FOUR_BIT)
    num_held = plan.tiers[0].num_experts
    ran = run(modelled / 2, modelled, held_ratio=num_held / (48 * 128))
    reuse = ReuseCounts((8 * 1000,) + (0,) * 127, 1000)

    reasons, rate = planned(Past((ran,), None))
    assert rate == pytest.approx(modelled / 2)
    assert reasons[ReasonCode.RAN_BEFORE] == {
        "num_answers": 1,
        "tokens_per_s": round(modelled / 2, 2),
        "predicted_tokens_per_s": 12.0,
    }
    assert reason_sentence(known_reason(reasons, ReasonCode.RAN_BEFORE)).startswith(
        "Under a plan like this it wrote"
    )
    reasons, rate = planned(Past((), reuse))
    assert reasons[ReasonCode.HITS_FROM_OWN] == {"percent": 100.0, "num_tokens": 1000}
    assert rate > modelled
