"""Budgets that change all the time in a memory group: the demo's real process is never killed."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.plan.planner import plan_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    BudgetsSet,
    CommandFailed,
    GenerationFinished,
    SetBudgets,
    StartGeneration,
    TokensGenerated,
)
from runtime.protocol.plan import PlacementPlan, ReasonCode
from runtime.protocol.values import Budgets
from tests.support.engine_runs import GREEDY, user
from tests.support.memory_group import MemoryGroup, memory_group
from tests.support.memory_limits import limit_for
from tests.support.plan_cases import facts_of, machine
from tests.support.runtime_process import RuntimeProcess, running_runtime, service_command

NUM_CHANGES = 60
CONTEXT_TOKENS = 512


@pytest.fixture
def limit_bytes(demo_folder: Path) -> int:
    """A limit under which half of the experts have room."""
    plan = plan_model(facts_of(demo_folder), machine(), Budgets(), CONTEXT_TOKENS)[0]
    return limit_for(plan, 0.5)


@pytest.fixture
def group(
    limit_bytes: int, record_property: Callable[[str, object], None]
) -> Iterator[MemoryGroup | None]:
    with memory_group(limit_bytes) as made:
        record_property("memory_group", "none" if made is None else made.name)
        yield made


@pytest.fixture
def runtime(tmp_path: Path, group: MemoryGroup | None) -> Iterator[RuntimeProcess]:
    command = service_command(tmp_path / "runtime.log", "--engine", "tiered")
    if group is not None:
        command = group.command(command)
    with running_runtime(tmp_path, command=command) as process:
        process.open()
        yield process


def ask(runtime: RuntimeProcess, request_id: int) -> None:
    """Ask the question, as the first of a new conversation."""
    question = [user("What is a larder?")]
    runtime.send(StartGeneration(request_id=request_id, conversation=question, sampling=GREEDY))


def budgets_of(plan: PlacementPlan, limit_bytes: int, draws: random.Random) -> Budgets:
    """Return a budget, from a little below the least to far above the group's limit."""
    return Budgets(ram_bytes=draws.randint(int(plan.min_ram_bytes * 0.9), 2 * limit_bytes))


@pytest.mark.timeout(300)
def test_live_budgets_in_a_memory_group_kill_nothing_and_change_no_answer(
    runtime: RuntimeProcess, group: MemoryGroup | None, demo_folder: Path, limit_bytes: int
) -> None:
    plan = runtime.plans(demo_folder, context_tokens=CONTEXT_TOKENS)[0]
    loaded = runtime.load(plan)
    draws = random.Random(7)
    answers: list[tuple[int, ...]] = []
    token_ids: list[int] = []
    closings: list[BudgetsSet | CommandFailed] = []
    ask(runtime, 10)
    for number in range(NUM_CHANGES):
        budgets = budgets_of(plan, limit_bytes, draws)
        runtime.send(SetBudgets(request_id=100 + number, budgets=budgets))
        while len(closings) == number:
            event = runtime.next_event()
            assert event is not None, "the process is gone"
            if isinstance(event, TokensGenerated):
                token_ids += event.token_ids
            elif isinstance(event, GenerationFinished):
                answers.append(tuple(token_ids))
                token_ids.clear()
                ask(runtime, 10 + len(answers))
            elif isinstance(event, BudgetsSet | CommandFailed):
                closings.append(event)
    while not isinstance(event := runtime.next_event(), GenerationFinished):
        assert event is not None, "the process is gone"
        if isinstance(event, TokensGenerated):
            token_ids += event.token_ids
    answers.append(tuple(token_ids))

    assert runtime.process.poll() is None
    refusals = [each.error.code for each in closings if isinstance(each, CommandFailed)]
    assert set(refusals) <= {ErrorCode.RAM_BUDGET_TOO_SMALL}
    assert len(refusals) < NUM_CHANGES // 4
    assert len(set(answers)) == 1
    assert len(answers[0]) == GREEDY.max_tokens
    if group is not None:
        assert ReasonCode.RAM_LIMITED_BY_CONTROL_GROUP in {each.code for each in plan.reasons}
        assert loaded.budget_bytes < limit_bytes
        for closing in closings:
            if isinstance(closing, BudgetsSet):
                assert closing.plan.base_bytes + closing.plan.ram_bytes <= limit_bytes
        assert group.num_killed == 0
        assert 0 < group.peak_bytes < limit_bytes


@pytest.mark.parametrize("places", [["/groups/ours"], []], ids=["allowed", "not allowed"])
def test_memory_group_is_demanded_in_ci_where_one_may_be_made(
    monkeypatch: pytest.MonkeyPatch, places: list[str]
) -> None:
    monkeypatch.setattr("tests.support.memory_group._make", lambda limit_bytes: None)
    monkeypatch.setattr("tests.support.memory_group.places_for_groups", lambda: places)
    monkeypatch.setenv("CI", "true")
    demanded = pytest.raises(AssertionError, match="/groups/ours")
    with demanded if places else contextlib.nullcontext(), memory_group(1 << 30) as group:
        assert group is None
    monkeypatch.delenv("CI")
    with memory_group(1 << 30) as group:
        assert group is None
