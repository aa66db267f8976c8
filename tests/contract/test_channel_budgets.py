"""Many live budgets in a real process: none is lost, no answer waits, no token changes."""

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from runtime.engine.script import Script
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    BudgetsSet,
    CommandFailed,
    GenerationFinished,
    SetBudgets,
    StartGeneration,
    TokensGenerated,
)
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets
from tests.support.checkpoint_folders import write_checkpoint
from tests.support.engine_runs import user
from tests.support.runtime_process import RuntimeProcess, running_runtime

NUM_CHANGES = 200
FIRST_CHANGE_ID = 1000
MAX_TOKENS = 150
MOST_SLOWER = 3.0


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A loaded model, and what of it answers while its budgets change."""

    runtime: RuntimeProcess
    plan: PlacementPlan

    def ask(self, request_id: int) -> None:
        self.runtime.send(
            StartGeneration(
                request_id=request_id,
                conversation=[user("hello")],
                sampling=SamplingSettings(temperature=0, max_tokens=MAX_TOKENS),
            )
        )

    def answer(self, request_id: int) -> tuple[list[int], GenerationFinished]:
        """Ask and wait; return the tokens and the closing event."""
        self.ask(request_id)
        token_ids: list[int] = []
        while not isinstance(event := self.runtime.next_event(), GenerationFinished):
            if isinstance(event, TokensGenerated):
                token_ids += event.token_ids
        return token_ids, event


@pytest.fixture(params=["scripted", "tiered"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    engine = str(request.param)
    model = write_checkpoint(tmp_path / "model")
    script = tmp_path / "script.json"
    script.write_bytes(msgspec.json.encode(Script(answers=("word " * MAX_TOKENS,), load_s=0)))
    arguments = ("--engine", engine, "--script", str(script), "--rate", "200")
    with running_runtime(tmp_path, *arguments) as runtime:
        runtime.open()
        plan = runtime.plans(model)[0]
        runtime.load(plan)
        yield Case(runtime, plan)


def budgets_of(plan: PlacementPlan, draws: random.Random) -> Budgets:
    """Return budgets from too small to more than all."""
    least, most = plan.min_ram_bytes, plan.all_ram_bytes
    ram_bytes = draws.randint(least - (most - least) // 10, most + (most - least) // 10)
    if plan.device == "cpu":
        return Budgets(ram_bytes=ram_bytes)
    vram_bytes = draws.randint(plan.min_vram_bytes, plan.all_vram_bytes)
    return Budgets(ram_bytes=ram_bytes, vram_bytes={plan.device: vram_bytes})


def test_many_live_budgets_all_close_and_leave_the_answer_as_it_is(case: Case) -> None:
    runtime = case.runtime
    alone, finished_alone = case.answer(4)
    draws = random.Random(7)
    sent = {FIRST_CHANGE_ID + number: budgets_of(case.plan, draws) for number in range(NUM_CHANGES)}
    case.ask(5)
    closings: dict[int, BudgetsSet | CommandFailed] = {}
    token_ids: list[int] = []
    finished: GenerationFinished | None = None
    wanted = iter(sent.items())
    while finished is None or len(closings) < NUM_CHANGES:
        # A few at a time, so that some meet each other and all meet the answer.
        for _, (request_id, budgets) in zip(range(3), wanted, strict=False):
            runtime.send(SetBudgets(request_id=request_id, budgets=budgets))
        event = runtime.next_event()
        assert event is not None
        if isinstance(event, TokensGenerated):
            token_ids += event.token_ids
        elif isinstance(event, GenerationFinished):
            finished = event
        elif isinstance(event, BudgetsSet | CommandFailed):
            assert event.request_id not in closings
            closings[event.request_id] = event
    assert set(closings) == set(sent)
    num_set = 0
    for request_id, closing in closings.items():
        if isinstance(closing, CommandFailed):
            assert closing.error.code is ErrorCode.RAM_BUDGET_TOO_SMALL
            assert (sent[request_id].ram_bytes or 0) < case.plan.min_ram_bytes
        else:
            num_set += 1
            assert closing.model.tiers == closing.plan.tiers
            assert closing.plan.ram_bytes <= (closing.plan.budgets.ram_bytes or 0)
    assert num_set > NUM_CHANGES // 2
    assert token_ids == alone
    assert finished.stats.decode_s < MOST_SLOWER * finished_alone.stats.decode_s + 1.0
