"""The demo in the real process, looked at from outside from its first moment on: it keeps to its
budget while it loads a prepared copy, reads a long prompt in chunks and answers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.protocol.messages import (
    GenerationFinished,
    ModelPrepared,
    PrepareModel,
    StartGeneration,
)
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, WeightFormat
from tests.support.engine_runs import GREEDY, user
from tests.support.resident_watch import ResidentWatch
from tests.support.runtime_process import RuntimeProcess, running_runtime

CONTEXT_TOKENS = 2048
LONG_TEXT = (
    "A larder is a cool room in which food is kept, and a cook knows every shelf of it. " * 75
)
NUM_LONG_TOKENS = 1500
RecordProperty = Callable[[str, object], None]
EXPERT_FORMAT = WeightFormat.Q4A_G32


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[RuntimeProcess]:
    with running_runtime(tmp_path, "--engine", "tiered") as process:
        yield process


def plan(runtime: RuntimeProcess, folder: Path, budgets: Budgets) -> PlacementPlan:
    """Return the plan in four bits under budgets."""
    plans = runtime.plans(folder, budgets, CONTEXT_TOKENS)
    found = next(each for each in plans if each.kind is PlanKind.FOUR_BIT)
    assert found.problem is None
    return found


def ask(runtime: RuntimeProcess, request_id: int, text: str) -> GenerationFinished:
    """Ask a question of its own and wait for the end of the answer."""
    conversation = [user(text)]
    runtime.send(StartGeneration(request_id=request_id, conversation=conversation, sampling=GREEDY))
    return runtime.wait_for(GenerationFinished)


@pytest.mark.timeout(300)
def test_prepared_copy_stays_within_its_budget_from_before_loading_to_the_last_token(
    runtime: RuntimeProcess, demo_folder: Path, tmp_path: Path, record_property: RecordProperty
) -> None:
    limit_bytes = 1 << 62
    with ResidentWatch(runtime.process.pid, lambda: limit_bytes) as watch:
        runtime.open()
        command = PrepareModel(
            request_id=3,
            folder=str(demo_folder),
            expert_format=EXPERT_FORMAT,
            output_folder=str(tmp_path / "copy"),
        )
        runtime.send(command)
        runtime.wait_for(ModelPrepared)
        whole = plan(runtime, demo_folder, Budgets())
        between = whole.min_ram_bytes + (whole.all_ram_bytes - whole.min_ram_bytes) // 3
        wanted = plan(runtime, demo_folder, Budgets(ram_bytes=between))
        assert not wanted.needs_prepare
        limit_bytes = between

        watch.phase = "load"
        loaded = runtime.load(wanted)
        watch.phase = "long prompt"
        long = ask(runtime, 5, LONG_TEXT)
        watch.phase = "answer"
        ask(runtime, 6, "What is a larder?")

    assert loaded.expert_format is EXPERT_FORMAT
    assert loaded.budget_bytes == between
    assert long.stats.prompt_tokens >= NUM_LONG_TOKENS
    assert long.stats.drive_bytes_read > 0
    assert min(watch.num_samples[phase] for phase in ("load", "long prompt", "answer")) > 5
    worst = watch.worst_ratio(loaded.base_bytes)
    record_property("worst_ratio", worst)
    assert max(worst.values()) <= 1.1, worst
    assert worst["long prompt"] > 0.5, "the budget is used, so that the limit means something"
