"""The demo model under budgets that change all the time: memory follows, answers do not."""

import random
import threading
from pathlib import Path
from typing import Self

import pytest
import torch

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.generate.engine import TieredEngine
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.model import LoadedModel, LoadStage
from runtime.protocol.plan import PlacementPlan
from tests.support.engine_runs import Run, user
from tests.support.hand_made_plans import exact_plan

NUM_CHANGES = 200
CONTEXT_TOKENS = 512
SHORT = SamplingSettings(temperature=0, max_tokens=24)


@pytest.fixture(autouse=True)
def _one_torch_thread() -> None:
    torch.set_num_threads(1)


class ResidentWatch:
    """Compares what lies in RAM with base and budget, all the time in a thread of its own."""

    def __init__(self, engine: TieredEngine) -> None:
        assert engine._parts is not None
        self._engine = engine
        self._ledger = engine._parts.ledger
        self._base_bytes = engine._parts.base_bytes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.num_samples = 0
        self.worst_ratio = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            limit_before = self._ledger.limit_bytes
            resident_bytes = self._engine.sample(0.0).resident_bytes - self._base_bytes
            # Between two looks the limit may have changed; the larger one was in force.
            limit_bytes = max(limit_before, self._ledger.limit_bytes)
            self.worst_ratio = max(self.worst_ratio, resident_bytes / limit_bytes)
            self.num_samples += 1


def ignore_progress(stage: LoadStage, done_bytes: int, total_bytes: int) -> None:
    assert 0 <= done_bytes <= total_bytes, stage


def test_live_budgets_resident_size_stays_within_a_tenth_through_200_changes(
    demo_folder: Path,
) -> None:
    plans = [exact_plan(demo_folder, slots, CONTEXT_TOKENS) for slots in (32, 6, 20, 12, 28)]
    chance = random.Random(0)
    outcomes: list[LoadedModel | LarderError] = []
    answers: list[tuple[int, ...]] = []
    engine = TieredEngine()
    engine.load(plans[0], ignore_progress, CancelToken())

    def note(plan: PlacementPlan, outcome: LoadedModel | LarderError) -> None:
        assert plan in plans
        outcomes.append(outcome)

    with ResidentWatch(engine) as watch:
        while len(outcomes) < NUM_CHANGES:
            assert engine._parts is not None
            engine._parts.kv.truncate(0)
            run = Run([])
            for event in engine.start(1, [user("What is a larder?")], SHORT, CancelToken()):
                run.events.append(event)
                engine.propose(chance.choice(plans), note)
            answers.append(tuple(run.token_ids))
            engine.apply()

    assert all(isinstance(outcome, LoadedModel) for outcome in outcomes)
    assert watch.num_samples > NUM_CHANGES
    assert watch.worst_ratio <= 1.1
    assert len(set(answers)) == 1
    assert engine.wait_filled(60)
    engine.apply()
    assert engine._parts is not None
    engine._parts.experts.check()
    engine._parts.kv.check()
    engine.close()
