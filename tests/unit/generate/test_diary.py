"""Answers leave behind what they took and how they reused experts; the next plan knows it."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from runtime.engine.base import CancelToken
from runtime.generate.diary import MIN_TOKENS, run_of
from runtime.generate.engine import TieredEngine
from runtime.hardware.past_runs import PastRuns
from runtime.kernels.base import Kernels
from runtime.plan.history import Setting
from runtime.protocol.chat import GenerationStats, SamplingSettings
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import WeightFormat
from tests.protocol.examples import EXAMPLE_STATS
from tests.support.engine_runs import answer, answer_cancelled_after, ignore_load_progress, user
from tests.support.hand_made_plans import FORECAST, exact_plan

QUESTION = [user("What is the capital of France?")]
NUM_TOKENS = MIN_TOKENS + 8
LONG = SamplingSettings(temperature=0, max_tokens=NUM_TOKENS, repetition_penalty=1.4)
LIKELY = msgspec.structs.replace(FORECAST, decode_tokens_per_s=1.5)
SETTING = Setting(WeightFormat.BF16, "cpu", "native", 0.5)


@pytest.fixture
def past_runs(tmp_path: Path) -> PastRuns:
    return PastRuns(tmp_path / "past")


@pytest.fixture
def plan(qwen2_folder: Path) -> PlacementPlan:
    return msgspec.structs.replace(exact_plan(qwen2_folder, 4), forecast=LIKELY)


@pytest.fixture
def engine(kernels: Kernels, plan: PlacementPlan, past_runs: PastRuns) -> Iterator[TieredEngine]:
    engine = TieredEngine(kernels)
    engine.past_runs = past_runs
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine.wait_filled(60)
    yield engine
    engine.close()


def test_answer_is_kept_with_its_routing_and_the_next_knows_what_is_usual(
    engine: TieredEngine, plan: PlacementPlan, past_runs: PastRuns
) -> None:
    stats = answer(engine, QUESTION, LONG).stats
    past = past_runs.read(plan.model_fingerprint)

    assert stats.usual_tokens_per_s == 0
    assert stats.generated_tokens == NUM_TOKENS
    (run,) = past.runs
    assert run.measured_tokens_per_s == stats.decode_tokens_per_s
    assert run.predicted_tokens_per_s == 1.5
    assert run.num_tokens == NUM_TOKENS
    assert engine._parts is not None
    spec = engine._parts.spec
    assert run.held_ratio == pytest.approx(4 / spec.num_experts)
    assert past.reuse is not None
    assert past.reuse.num_tokens == NUM_TOKENS - 1
    assert sum(past.reuse.found) == (NUM_TOKENS - 1) * len(spec.moe_layers) * spec.top_k
    # The first token of an answer comes from the prompt's step.
    assert past.routing is not None
    assert NUM_TOKENS - 1 <= past.routing.num_tokens <= NUM_TOKENS
    assert past.routing.num_needs == past.routing.num_tokens * len(spec.moe_layers) * spec.top_k
    assert stats.tiers[0].misses >= stats.decode_expert_misses > 0

    again = answer(engine, QUESTION, LONG).stats
    assert again.usual_tokens_per_s == stats.decode_tokens_per_s
    assert len(past_runs.read(plan.model_fingerprint).runs) == 2


def test_answer_that_was_stopped_counts_as_far_as_it_came(
    engine: TieredEngine, plan: PlacementPlan, past_runs: PastRuns
) -> None:
    run = answer_cancelled_after(engine, QUESTION, 3, LONG)
    past = past_runs.read(plan.model_fingerprint)
    assert run.stats.generated_tokens < MIN_TOKENS
    assert past.runs == ()
    assert past.reuse is not None
    assert 0 < past.reuse.num_tokens < NUM_TOKENS


def test_answer_while_experts_are_still_read_says_nothing_of_the_plan(
    engine: TieredEngine,
    plan: PlacementPlan,
    past_runs: PastRuns,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert engine._parts is not None
    monkeypatch.setattr(engine._parts.experts, "wait_filled", lambda _timeout_s: False)
    answer(engine, QUESTION, LONG)
    past = past_runs.read(plan.model_fingerprint)
    assert past.runs == ()
    assert past.reuse is not None


def stats_of(**changes: object) -> GenerationStats:
    predicted = msgspec.structs.replace(
        LIKELY,
        decode_tokens_per_s=5.0,
        speed_ratio=0.5,
        hit_ratio=0.75,
        drive_s_per_token=0.04,
    )
    fields: dict[str, object] = {
        "generated_tokens": 101,
        "decode_tokens_per_s": 4.0,
        "predicted": predicted,
        "decode_expert_misses": 2000,
    }
    return msgspec.structs.replace(EXAMPLE_STATS, **(fields | changes))


def test_run_is_compared_with_what_the_model_says_for_the_misses_that_there_were() -> None:
    # By the cost model alone 0.1 s a token, 0.04 of them for 10 misses of 40 look-ups.
    run = run_of(stats_of(), SETTING, 40)
    assert run is not None
    assert run.modelled_tokens_per_s == pytest.approx(1 / 0.14)
    fewer = run_of(stats_of(decode_expert_misses=0), SETTING, 40)
    assert fewer is not None
    assert fewer.modelled_tokens_per_s == pytest.approx(1 / 0.06)


@pytest.mark.parametrize(
    "changes",
    [
        {"predicted": None},
        {"predicted": FORECAST},
        {"generated_tokens": MIN_TOKENS - 1},
        {"decode_tokens_per_s": 0.0},
    ],
)
def test_run_that_says_nothing_of_a_rate_is_not_kept(changes: dict[str, object]) -> None:
    assert run_of(stats_of(**changes), SETTING, 40) is None


def test_setting_is_that_of_the_plan(engine: TieredEngine, plan: PlacementPlan) -> None:
    assert engine._diary is not None
    setting = engine._diary._setting()
    assert dataclasses.astuple(setting)[:2] == (plan.expert_format, plan.device)
