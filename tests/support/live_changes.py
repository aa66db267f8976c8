"""Answers while budgets change all the time, in a process of its own that watches its memory.

``python -m tests.support.live_changes FOLDER NUM_CHANGES [card]`` prints what came of it as JSON.
With ``card`` most placements use a simulated one, whose profile the environment names, and some
do not: then the dense part moves.
"""

import dataclasses
import json
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from runtime.device.base import Device
from runtime.device.open import open_device
from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.generate import plan_terms
from runtime.generate.engine import TieredEngine
from runtime.generate.plan_terms import ram_limit_bytes
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan
from tests.support.engine_runs import GREEDY, Run, ignore_load_progress, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.support.resident_watch import ResidentWatch

CONTEXT_TOKENS = 512
_RAM_SLOTS = (32, 6, 20, 12, 28)
_PLACES_ON_CARD = ((20, 4), (12, 8), (18, 0), (16, 2), (12, 6))
_CHANGES_PER_MOVE = 24


@dataclasses.dataclass(frozen=True)
class Changes:
    """What came of many changes of budgets."""

    num_changed: int
    num_refused: int
    num_moved: int
    """Changes that brought the dense part to another memory."""
    num_answers: int
    distinct_answers: list[list[int]]
    num_samples: dict[str, int]
    worst_ratio: dict[str, float]
    """Resident size less base by the budget in force, in each phase."""


class ChangingEngine:
    """An engine whose budgets change at every step of its answers.

    Threads: the watch's thread reads plans and devices.
    """

    def __init__(self, plans: list[PlacementPlan]) -> None:
        self._plans = plans
        self._chance = random.Random(0)
        self._waiting: list[PlacementPlan] = []
        self._devices: list[Device] = []
        self._in_force = plans[0]
        self._num_moved = 0
        self._outcomes: list[LoadedModel | LarderError] = []
        self._answers: list[tuple[int, ...]] = []
        self._engine = TieredEngine()

    def run(self, num_changes: int) -> Changes:
        """Load and answer until so many changes were made."""
        engine, loaded = self._engine, None
        with ResidentWatch(os.getpid(), self._limit_bytes, self._bytes_on_devices) as watch:
            watch.phase = "load"
            loaded = engine.load(self._in_force, ignore_load_progress, CancelToken())
            watch.phase = "answers"
            while len(self._outcomes) < num_changes:
                self._answer()
            watch.phase = "rest"
            assert engine.wait_filled(60)
            engine.apply()
        assert engine._parts is not None
        engine._parts.experts.check()
        engine._parts.kv.check()
        engine.close()
        return Changes(
            num_changed=len(self._outcomes),
            num_refused=sum(not isinstance(each, LoadedModel) for each in self._outcomes),
            num_moved=self._num_moved,
            num_answers=len(self._answers),
            distinct_answers=[list(ids) for ids in set(self._answers)],
            num_samples=dict(watch.num_samples),
            worst_ratio=watch.worst_ratio(loaded.base_bytes),
        )

    def open_device(
        self, device: str, budget_bytes: int, env: Mapping[str, str] | None = None
    ) -> Device:
        """Open a device and remember it."""
        self._devices.append(open_device(device, budget_bytes, env))
        return self._devices[-1]

    def _answer(self) -> None:
        engine = self._engine
        assert engine._parts is not None
        engine._parts.kv.truncate(0)
        run = Run([])
        for event in engine.start(1, [user("What is a larder?")], GREEDY, CancelToken()):
            run.events.append(event)
            self._propose()
        self._answers.append(tuple(run.token_ids))
        engine.apply()

    def _propose(self) -> None:
        is_move = self._chance.randrange(_CHANGES_PER_MOVE) == 0
        plan = self._plans[-1] if is_move else self._chance.choice(self._plans[:-1])
        self._waiting.append(plan)
        self._engine.propose(plan, self._note)

    def _note(self, plan: PlacementPlan, outcome: LoadedModel | LarderError) -> None:
        """Take an outcome; it is told to each of the proposals that waited together."""
        if not self._waiting:
            return
        self._outcomes.append(outcome)
        self._num_moved += plan.device != self._in_force.device
        self._in_force = plan
        self._waiting.clear()

    def _limit_bytes(self) -> int:
        """Return the larger of the budgets in force and on their way."""
        return max(map(ram_limit_bytes, [self._in_force, *self._waiting]))

    def _bytes_on_devices(self) -> int:
        return sum(device.num_host_bytes for device in self._devices)


def main() -> None:
    """Change budgets as the command line says."""
    torch.set_num_threads(1)
    folder, num_changes, *more = sys.argv[1:]
    model = Path(folder)
    if more == ["card"]:
        plans = [device_plan(model, ram, vram) for ram, vram in _PLACES_ON_CARD]
        plans.append(exact_plan(model, 10))
    else:
        plans = [exact_plan(model, slots, CONTEXT_TOKENS) for slots in _RAM_SLOTS]
    changing = ChangingEngine(plans)
    plan_terms.open_device = changing.open_device  # type: ignore[attr-defined]
    sys.stdout.write(json.dumps(dataclasses.asdict(changing.run(int(num_changes)))) + "\n")


if __name__ == "__main__":
    main()
