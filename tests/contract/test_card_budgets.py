"""The demo beside a simulated card, in a real process: drawn budgets change no token."""

import random
from pathlib import Path

import pytest

from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.protocol.messages import (
    BudgetsSet,
    CommandFailed,
    GenerationFinished,
    SetBudgets,
    StartGeneration,
    TokensGenerated,
)
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets, Tier
from tests.support.card_profile import CARD, write_card_profile
from tests.support.engine_runs import GREEDY, user
from tests.support.runtime_process import RuntimeProcess, running_runtime

pytestmark = pytest.mark.usefixtures("measured_before")

NUM_ANSWERS = 4
EVERY_TOKENS = 8
"""During an answer the budgets change this often."""
FIRST_CHANGE_ID = 1000


def load_exact(runtime: RuntimeProcess, folder: Path) -> PlacementPlan:
    """Load a model as published; return a plan whose bounds hold for the loaded context."""
    runtime.open()
    plan = runtime.plans(folder)[0]
    runtime.load(plan)
    return runtime.plans(folder, context_tokens=plan.context_tokens)[0]


class DrawnBudgets:
    """Changes both budgets of a loaded model as chance has it, and notes what came of it."""

    def __init__(self, runtime: RuntimeProcess, plan: PlacementPlan) -> None:
        self._runtime = runtime
        self._plan = plan
        self._draws = random.Random(11)
        self.num_sent = 0
        self.set: list[BudgetsSet] = []

    def change(self) -> None:
        """Ask for other budgets: in one case of four none of the card."""
        plan, draws = self._plan, self._draws
        ram_bytes = draws.randint(plan.min_ram_bytes, plan.all_ram_bytes)
        vram_bytes = draws.randint(plan.min_vram_bytes, plan.vram_bytes)
        if draws.randrange(4) == 0:
            ram_bytes, vram_bytes = plan.all_ram_bytes + plan.all_vram_bytes, 0
        budgets = Budgets(ram_bytes=ram_bytes, vram_bytes={CARD: vram_bytes})
        request_id = FIRST_CHANGE_ID + self.num_sent
        self._runtime.send(SetBudgets(request_id=request_id, budgets=budgets))
        self.num_sent += 1

    def answer(self, request_id: int, *, is_changing: bool) -> list[int]:
        """Return the tokens of an answer; changing, the budgets change while it is written."""
        question = [user("What is the capital of France?")]
        self._runtime.send(
            StartGeneration(request_id=request_id, conversation=question, sampling=GREEDY)
        )
        token_ids: list[int] = []
        while not isinstance(event := self._runtime.next_event(), GenerationFinished):
            if isinstance(event, TokensGenerated):
                num_before = len(token_ids)
                token_ids += event.token_ids
                if is_changing and num_before // EVERY_TOKENS < len(token_ids) // EVERY_TOKENS:
                    self.change()
            elif isinstance(event, BudgetsSet):
                self.set.append(event)
            else:
                assert not isinstance(event, CommandFailed), event.error
        return token_ids


def test_any_drawn_budgets_of_card_and_ram_give_the_tokens_of_the_processor(
    demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_runtime(tmp_path, "--engine", "tiered") as runtime:
        alone = load_exact(runtime, demo_folder)
        assert alone.device == "cpu"
        expected_ids = DrawnBudgets(runtime, alone).answer(5, is_changing=False)
    assert len(expected_ids) == GREEDY.max_tokens
    path = tmp_path / "profile.json"
    profile = write_card_profile(path, demo_folder, vram_part=0.6, ram_part=1.0)
    monkeypatch.setenv(MACHINE_VARIABLE, str(profile))
    with running_runtime(tmp_path, "--engine", "tiered") as runtime:
        drawn = DrawnBudgets(runtime, load_exact(runtime, demo_folder))
        for number in range(NUM_ANSWERS):
            drawn.change()
            assert drawn.answer(10 + number, is_changing=True) == expected_ids
        while len(drawn.set) < drawn.num_sent:
            drawn.set.append(runtime.wait_for(BudgetsSet))
    on_card = [
        {share.tier: share.num_experts for share in each.plan.tiers}.get(Tier.VRAM, 0)
        for each in drawn.set
    ]
    assert min(on_card) == 0
    assert len(set(on_card)) > NUM_ANSWERS
