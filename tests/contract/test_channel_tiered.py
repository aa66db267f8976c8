"""The channel's contract, kept by a real background process with the tiered engine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    CancelAccepted,
    CancelRequest,
    CommandFailed,
    CountTokens,
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    LoadModel,
    ModelPrepared,
    PrepareModel,
    PrepareProgressed,
    RuntimeStopped,
    StartGeneration,
    StopRuntime,
    TokensCounted,
    TokensGenerated,
)
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import WeightFormat
from runtime.service.channel import ExitStatus
from tests.support.checkpoint_folders import write_checkpoint
from tests.support.engine_runs import user
from tests.support.runtime_process import ROOT, TIMEOUT_S, RuntimeProcess, running_runtime

pytestmark = pytest.mark.usefixtures("measured_before")


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[RuntimeProcess]:
    with running_runtime(tmp_path, "--engine", "tiered") as process:
        process.open()
        yield process


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model")


def plan(runtime: RuntimeProcess, model: Path, kind: PlanKind) -> PlacementPlan:
    return next(each for each in runtime.plans(model) if each.kind is kind)


def ask(request_id: int, max_tokens: int) -> StartGeneration:
    return StartGeneration(
        request_id=request_id,
        conversation=[user("hello")],
        sampling=SamplingSettings(temperature=0, max_tokens=max_tokens),
    )


def test_tiered_session_plans_loads_answers_counts_and_stops(
    runtime: RuntimeProcess, model: Path
) -> None:
    assert runtime.load(plan(runtime, model, PlanKind.EXACT)).is_exact
    question = ask(4, max_tokens=5)
    runtime.send(CountTokens(request_id=5, conversation=question.conversation))
    counted = runtime.wait_for(TokensCounted)
    runtime.send(question)
    assert runtime.wait_for(GenerationStarted).prompt_tokens == counted.prompt_tokens
    token_ids: list[int] = []
    while not isinstance(event := runtime.next_event(), GenerationFinished):
        if isinstance(event, TokensGenerated):
            token_ids += event.token_ids
    assert len(token_ids) == event.stats.generated_tokens <= 5
    runtime.send(StopRuntime(request_id=6))
    assert isinstance(runtime.rest()[-1], RuntimeStopped)
    assert runtime.wait() == ExitStatus.ENDED


def test_tiered_answer_cancelled_leaves_the_model_ready(
    runtime: RuntimeProcess, model: Path
) -> None:
    runtime.load(plan(runtime, model, PlanKind.EXACT))
    runtime.send(ask(4, max_tokens=100_000))
    runtime.send(CancelRequest(request_id=5, target_request_id=4))
    closings: set[int] = set()
    while closings != {4, 5}:
        event = runtime.next_event()
        assert event is not None
        if isinstance(event, CancelAccepted | GenerationCancelled):
            closings.add(event.request_id)
    runtime.send(ask(6, max_tokens=1))
    assert runtime.wait_for(GenerationFinished).stats.generated_tokens == 1


def test_tiered_preparing_in_a_child_makes_the_plan_loadable(
    runtime: RuntimeProcess, model: Path
) -> None:
    before = plan(runtime, model, PlanKind.EIGHT_BIT)
    assert before.needs_prepare
    runtime.send(LoadModel(request_id=3, plan=before))
    assert runtime.wait_for(CommandFailed).error.code is ErrorCode.NOT_PREPARED
    command = PrepareModel(request_id=4, folder=str(model), expert_format=WeightFormat.Q8_G32)
    runtime.send(command)
    assert runtime.wait_for(PrepareProgressed).total_bytes > 0
    assert runtime.wait_for(ModelPrepared).expert_format is WeightFormat.Q8_G32
    ready = plan(runtime, model, PlanKind.EIGHT_BIT)
    assert runtime.load(ready).expert_format is WeightFormat.Q8_G32


def test_larderctl_chat_with_the_tiered_engine_prints_its_figures(model: Path) -> None:
    arguments = ["chat", str(model), "--prompt", "hello", "--max-tokens", "4", "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "runtime.cli", *arguments, "--temperature", "0"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=True,
    )
    answer = json.loads(result.stdout)
    assert len(answer["token_ids"]) == answer["generated_tokens"] <= 4
    assert answer["tiers"]["ram"]["hits"] > 0
    assert answer["peak_bytes"] >= answer["base_bytes"] > 0
    assert answer["predicted"]["decode_tokens_per_s_low"] > 0
