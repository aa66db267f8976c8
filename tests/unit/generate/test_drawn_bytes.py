"""Budgets drawn in bytes and planned by the planner: the same answer, and never more than asked."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.plan.planner import plan_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.machine import DeviceReport
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets
from runtime.spec.facts import ModelFacts
from tests.support.engine_runs import GREEDY, Run, answer, user
from tests.support.hand_made_plans import exact_plan
from tests.support.plan_cases import GIB, facts_of, machine
from tests.unit.generate.conftest import OpenEngine
from tests.unit.generate.test_placing import Replies

CARD = "simulated:0"
CONTEXT_TOKENS = 192
QUESTION = [user("What is the capital of France?")]
PARTS = st.floats(-0.1, 1.1)
"""Of what lies between the least and all of a model's memory; below 0 nothing can be loaded."""
DRAWN = st.one_of(st.tuples(PARTS, st.none()), st.tuples(PARTS, PARTS))
"""RAM, and VRAM where the card is used."""


@pytest.fixture(autouse=True)
def simulated_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))


@pytest.fixture(scope="module")
def facts(qwen2_folder: Path) -> ModelFacts:
    return facts_of(qwen2_folder)


@pytest.fixture
def lasting_engine(open_engine: OpenEngine, facts: ModelFacts) -> TieredEngine:
    """One engine for all examples of a property."""
    middle = planned(facts, (0.5, 0.5))
    assert middle.device == CARD
    assert 0 < sum(middle.vram_slots_per_layer) < sum(planned(facts, (0.5, 1)).vram_slots_per_layer)
    return open_engine(middle)


@pytest.fixture
def expected_ids(open_engine: OpenEngine, qwen2_folder: Path) -> list[int]:
    """What the processor alone answers with everything in RAM."""
    return answer(open_engine(exact_plan(qwen2_folder)), QUESTION).token_ids


def planned(facts: ModelFacts, drawn: tuple[float, float | None]) -> PlacementPlan:
    """Return the planner's plan for budgets in bytes."""
    ram_part, vram_part = drawn
    card = DeviceReport(
        device=CARD,
        name="Card",
        total_bytes=GIB,
        free_bytes=GIB,
        is_simulated=True,
        is_used=True,
    )
    here = machine(devices=(card,) if vram_part is not None else ())
    whole = plan_model(facts, here, Budgets(), CONTEXT_TOKENS)[0]

    def drawn_bytes(least: int, most: int, part: float) -> int:
        return max(0, least + int(part * (most - least)))

    budgets = Budgets(ram_bytes=drawn_bytes(whole.min_ram_bytes, whole.all_ram_bytes, ram_part))
    if vram_part is not None:
        vram = drawn_bytes(whole.min_vram_bytes, whole.all_vram_bytes, vram_part)
        budgets = Budgets(ram_bytes=budgets.ram_bytes, vram_bytes={CARD: vram})
    return plan_model(facts, here, budgets, CONTEXT_TOKENS)[0]


@given(
    first=st.tuples(st.floats(0, 1.1), st.none()) | st.tuples(st.floats(0, 1.1), st.floats(0, 1.1)),
    changes=st.dictionaries(st.integers(0, 30), DRAWN, max_size=8),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_budgets_drawn_in_bytes_give_the_same_tokens_and_are_kept(
    lasting_engine: TieredEngine,
    facts: ModelFacts,
    expected_ids: list[int],
    first: tuple[float, float | None],
    changes: dict[int, tuple[float, float | None]],
) -> None:
    engine, replies = lasting_engine, Replies()
    plan = planned(facts, first)
    assert plan.problem is None
    engine.propose(plan, replies)
    engine.apply()
    assert replies.codes == [None]
    assert engine._parts is not None
    engine._parts.kv.truncate(0)
    run = Run([])

    for step, event in enumerate(engine.start(1, QUESTION, GREEDY, CancelToken())):
        run.events.append(event)
        assert_kept(engine)
        if step in changes:
            engine.propose(planned(facts, changes[step]), replies)
    engine.apply()

    assert run.token_ids == expected_ids
    assert_kept(engine)
    for proposed, code in zip([each for each, _ in replies.outcomes], replies.codes, strict=True):
        assert code is (None if proposed.problem is None else ErrorCode.RAM_BUDGET_TOO_SMALL)
    engine._parts.experts.check()


def assert_kept(engine: TieredEngine) -> None:
    """Assert that what is held is at most the budgets of the plan in force."""
    assert engine._parts is not None
    plan = engine._parts.plan
    sample = engine.sample(0.1)
    assert sum(sample.ram_by_kind.values()) <= (plan.budgets.ram_bytes or 0)
    vram_bytes = plan.budgets.vram_bytes.get(CARD, plan.vram_bytes)
    assert sum(sample.vram_by_kind.values()) <= vram_bytes
