"""Loading: progress, refusals, cancel, and memory given back."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError, report_of
from runtime.generate.engine import TieredEngine
from runtime.kernels.base import Kernels
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import LoadStage
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.protocol.values import Budgets, WeightFormat
from tests.support.engine_runs import answer, ignore_load_progress, user
from tests.support.hand_made_plans import exact_plan, prepared_plan
from tests.unit.generate.conftest import OpenEngine


@dataclasses.dataclass
class ProgressLog:
    """Everything that loading told."""

    calls: list[tuple[LoadStage, int, int]] = dataclasses.field(default_factory=list)

    def __call__(self, stage: LoadStage, done_bytes: int, total_bytes: int) -> None:
        self.calls.append((stage, done_bytes, total_bytes))


def refused_code(kernels: Kernels, plan: PlacementPlan) -> ErrorCode:
    engine = TieredEngine(kernels)
    with pytest.raises(LarderError) as refused:
        engine.load(plan, ignore_load_progress, CancelToken())
    engine.close()
    return refused.value.code


def test_load_tells_its_stages_and_what_it_made(kernels: Kernels, qwen2_folder: Path) -> None:
    plan = exact_plan(qwen2_folder)
    progress = ProgressLog()
    engine = TieredEngine(kernels)

    loaded = engine.load(plan, progress, CancelToken())

    stages = list(dict.fromkeys(stage for stage, _, _ in progress.calls))
    assert stages == [LoadStage.START, LoadStage.DENSE, LoadStage.EXPERTS]
    for stage in (LoadStage.DENSE, LoadStage.EXPERTS):
        done = [(done, total) for which, done, total in progress.calls if which is stage]
        assert done[0][0] == 0
        assert done == sorted(done)
        assert done[-1][0] == done[-1][1] > 0
    assert loaded.folder == str(qwen2_folder)
    assert loaded.kernels == kernels.name
    assert loaded.budget_bytes == plan.ram_bytes
    assert loaded.base_bytes > 0
    assert loaded.load_s > 0
    engine.close()


def test_load_takes_exactly_the_budget_and_gives_it_back(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    plan = exact_plan(qwen2_folder)
    engine = open_engine(plan)

    held = engine.sample(0.1).ram_by_kind

    assert set(held) == set(MemoryPart)
    assert sum(held.values()) == plan.ram_bytes
    assert engine._parts is not None
    ledger = engine._parts.ledger
    engine.close()
    assert ledger.held_bytes == ledger.by_kind()[MemoryPart.WORK]
    assert engine.sample(0.1).ram_by_kind == {}


def test_load_small_work_budget_computes_the_prompt_in_smaller_chunks(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    question = [user("What is the capital of France? " * 3)]
    large = answer(open_engine(exact_plan(qwen2_folder)), question)
    small = answer(open_engine(exact_plan(qwen2_folder, chunk_tokens=16)), question)

    assert len(large.prefill) == 1
    assert len(small.prefill) == -(-small.stats.prompt_tokens // 16) > 2
    assert small.token_ids == large.token_ids


def test_load_of_another_checkpoint_refused_as_outdated(
    kernels: Kernels, qwen2_folder: Path
) -> None:
    plan = msgspec.structs.replace(exact_plan(qwen2_folder), model_fingerprint="another")

    assert refused_code(kernels, plan) is ErrorCode.PLAN_OUTDATED


def test_load_plan_with_a_problem_raises_that_problem(kernels: Kernels, qwen2_folder: Path) -> None:
    problem = report_of(LarderError(ErrorCode.CONTEXT_TOO_LONG, asked_tokens=9, max_tokens=8))
    plan = msgspec.structs.replace(exact_plan(qwen2_folder), problem=problem)

    assert refused_code(kernels, plan) is ErrorCode.CONTEXT_TOO_LONG


def test_load_budget_below_the_need_refused_before_reading(
    kernels: Kernels, qwen2_folder: Path
) -> None:
    plan = exact_plan(qwen2_folder, chunk_tokens=1)
    small = msgspec.structs.replace(plan, budgets=Budgets(ram_bytes=plan.ram_bytes - 4096))
    progress = ProgressLog()
    engine = TieredEngine(kernels)

    with pytest.raises(LarderError) as refused:
        engine.load(small, progress, CancelToken())

    assert refused.value.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    assert refused.value.parameters["budget_bytes"] == plan.ram_bytes - 4096
    assert {stage for stage, _, _ in progress.calls} == {LoadStage.START}


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("model.safetensors", ErrorCode.NOT_A_MODEL),
        ("tokenizer.json", ErrorCode.TOKENIZER_MISSING),
    ],
)
def test_load_after_a_file_went_away_names_it(
    kernels: Kernels, qwen2_folder: Path, tmp_path: Path, missing: str, code: ErrorCode
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(qwen2_folder, folder)
    plan = exact_plan(folder)
    (folder / missing).unlink()

    assert refused_code(kernels, plan) in {code, ErrorCode.SHARD_MISSING}


@pytest.mark.parametrize("stage", [LoadStage.DENSE, LoadStage.EXPERTS])
def test_load_cancelled_in_a_stage_can_be_started_again(
    kernels: Kernels, qwen2_folder: Path, stage: LoadStage
) -> None:
    cancel = CancelToken()
    engine = TieredEngine(kernels)

    def cancel_in_stage(now: LoadStage, done_bytes: int, total_bytes: int) -> None:
        if now is stage and done_bytes > 0:
            cancel.cancel()

    with pytest.raises(CancelledError):
        engine.load(exact_plan(qwen2_folder), cancel_in_stage, cancel)
    assert engine._parts is None

    engine.load(exact_plan(qwen2_folder), ignore_load_progress, CancelToken())
    assert answer(engine, [user("Hello")]).token_ids
    engine.close()


def test_load_second_model_refused(open_engine: OpenEngine, qwen2_folder: Path) -> None:
    plan = exact_plan(qwen2_folder)
    engine = open_engine(plan)

    with pytest.raises(LarderError) as refused:
        engine.load(plan, ignore_load_progress, CancelToken())

    assert refused.value.code is ErrorCode.MODEL_ALREADY_LOADED


def test_load_plan_that_is_not_prepared_refused(kernels: Kernels, qwen2_folder: Path) -> None:
    plan = msgspec.structs.replace(exact_plan(qwen2_folder), needs_prepare=True)

    assert refused_code(kernels, plan) is ErrorCode.NOT_PREPARED


def test_load_store_of_another_format_refused_as_outdated(
    kernels: Kernels, qwen2_folder: Path
) -> None:
    plan = msgspec.structs.replace(exact_plan(qwen2_folder), expert_format=WeightFormat.Q4_G32)

    assert refused_code(kernels, plan) is ErrorCode.PLAN_OUTDATED


@pytest.mark.parametrize(
    "changes",
    [
        {"slots_per_layer": [6, 6]},
        {"slots_per_layer": [6, 7, 6]},
        {"slots_per_layer": [6, 0, 6]},
        {"context_tokens": 0},
        {"context_tokens": 513},
    ],
)
def test_load_plan_that_does_not_fit_the_model_refused_as_outdated(
    kernels: Kernels, qwen2_folder: Path, changes: dict[str, Any]
) -> None:
    plan = msgspec.structs.replace(exact_plan(qwen2_folder), **changes)

    assert refused_code(kernels, plan) is ErrorCode.PLAN_OUTDATED


def test_load_more_than_the_pc_has_refused(kernels: Kernels, qwen2_folder: Path) -> None:
    plan = msgspec.structs.replace(exact_plan(qwen2_folder), ram_bytes=2**50)

    assert refused_code(kernels, plan) is ErrorCode.RAM_NOT_FREE


@pytest.mark.parametrize("expert_format", [WeightFormat.Q8_G32, WeightFormat.Q4_G32])
def test_load_prepared_copy_answers_the_same_at_every_budget(
    open_engine: OpenEngine, qwen2_folder: Path, tmp_path: Path, expert_format: WeightFormat
) -> None:
    question = [user("What is the capital of France?")]
    plan = prepared_plan(qwen2_folder, tmp_path / "copy", expert_format)
    small = msgspec.structs.replace(plan, slots_per_layer=[3, 4, 6])

    whole = answer(open_engine(plan), question)
    budgeted = answer(open_engine(small), question)

    assert whole.token_ids == budgeted.token_ids
    assert whole.stats.drive_bytes_read == 0 < budgeted.stats.drive_bytes_read
