"""Budgets that change while a model is loaded: the same answers, memory given back."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.engine.base import CancelToken
from runtime.errors import LarderError, report_of
from runtime.generate.engine import TieredEngine
from runtime.kernels.base import Kernels
from runtime.protocol.chat import FinishReason
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import TokensGenerated
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.protocol.telemetry import NoteCode
from runtime.protocol.values import Budgets
from runtime.residency.lanes import ReadLanes
from tests.support.engine_runs import GREEDY, Run, answer, ignore_load_progress, user
from tests.support.hand_made_plans import exact_plan
from tests.unit.generate.conftest import OpenEngine

QUESTION = [user("What is the capital of France?")]


class Replies:
    """What became of proposals, in order."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[PlacementPlan, LoadedModel | LarderError]] = []

    def __call__(self, plan: PlacementPlan, outcome: LoadedModel | LarderError) -> None:
        self.outcomes.append((plan, outcome))

    @property
    def codes(self) -> list[ErrorCode | None]:
        return [
            outcome.code if isinstance(outcome, LarderError) else None
            for _, outcome in self.outcomes
        ]


def held_bytes(engine: TieredEngine) -> int:
    return sum(engine.sample(0.1).ram_by_kind.values())


def test_placing_idle_engine_takes_the_new_budget_at_apply(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    large, small = exact_plan(qwen2_folder), exact_plan(qwen2_folder, 3)
    engine, replies = open_engine(large), Replies()

    engine.propose(small, replies)
    assert replies.outcomes == []
    assert held_bytes(engine) == large.ram_bytes
    engine.apply()

    ((plan, model),) = replies.outcomes
    assert plan is small
    assert isinstance(model, LoadedModel)
    assert model.budget_bytes == small.ram_bytes
    assert model.tiers == small.tiers
    assert held_bytes(engine) == small.ram_bytes
    assert answer(engine, QUESTION).stats.budget_bytes == small.ram_bytes


def test_placing_during_an_answer_changes_reads_and_never_tokens(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    expected = answer(open_engine(exact_plan(qwen2_folder)), QUESTION)
    engine, replies = open_engine(exact_plan(qwen2_folder)), Replies()

    run = Run([])
    for event in engine.start(1, QUESTION, GREEDY, CancelToken()):
        run.events.append(event)
        if isinstance(event, TokensGenerated) and not replies.outcomes:
            engine.propose(exact_plan(qwen2_folder, 3), replies)

    assert replies.codes == [None]
    assert run.token_ids == expected.token_ids
    assert run.reason is FinishReason.LENGTH
    assert run.stats.tiers[0].misses > 0
    assert run.stats.budget_bytes == exact_plan(qwen2_folder).ram_bytes


def test_placing_larger_fills_in_the_background_and_tells(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine, replies = open_engine(exact_plan(qwen2_folder, 3)), Replies()
    engine.sample(0.1)

    engine.propose(exact_plan(qwen2_folder), replies)
    engine.apply()
    assert engine.wait_filled(60)

    sample = engine.sample(0.1)
    assert [note.code for note in sample.notes] == [
        NoteCode.BUDGET_CHANGED,
        NoteCode.EXPERTS_LOADED,
    ]
    assert sample.notes[1].parameters["num_experts"] == 9
    run = answer(engine, QUESTION)
    assert run.stats.drive_bytes_read == run.stats.tiers[0].misses == 0


def test_a_heap_that_takes_its_time_is_asked_after_the_change_is_told(
    open_engine: OpenEngine, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Experts are read meanwhile, which is told too."""
    engine, replies = open_engine(exact_plan(qwen2_folder, 3)), Replies()
    engine.sample(0.1)
    asked: list[bool] = []
    monkeypatch.setattr(
        "runtime.memory.heap._system_trim", lambda: lambda: asked.append(engine.wait_filled(60))
    )

    engine.propose(exact_plan(qwen2_folder), replies)
    engine.apply()

    assert asked == [True]
    codes = [note.code for note in engine.sample(0.1).notes]
    assert codes == [NoteCode.BUDGET_CHANGED, NoteCode.EXPERTS_LOADED]


def test_placing_several_proposals_newest_counts(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine, replies = open_engine(exact_plan(qwen2_folder)), Replies()
    plans = [exact_plan(qwen2_folder, slots) for slots in (3, 5, 4)]

    for plan in plans:
        engine.propose(plan, replies)
    engine.apply()
    engine.apply()

    assert [plan is plans[2] for plan, _ in replies.outcomes] == [True] * 3
    assert replies.codes == [None] * 3
    assert held_bytes(engine) == plans[2].ram_bytes


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"slots_per_layer": [6, 6]}, ErrorCode.PLAN_OUTDATED),
        ({"slots_per_layer": [6, 7, 6]}, ErrorCode.PLAN_OUTDATED),
        ({"context_tokens": 100}, ErrorCode.PLAN_OUTDATED),
        ({"model_fingerprint": "another"}, ErrorCode.PLAN_OUTDATED),
        ({"budgets": Budgets(ram_bytes=4096)}, ErrorCode.RAM_BUDGET_TOO_SMALL),
        (
            {"problem": report_of(LarderError(ErrorCode.VRAM_NOT_THERE, device="cuda:7"))},
            ErrorCode.VRAM_NOT_THERE,
        ),
    ],
)
def test_placing_what_cannot_be_leaves_everything_as_it_was(
    open_engine: OpenEngine, qwen2_folder: Path, changes: dict[str, Any], code: ErrorCode
) -> None:
    plan = exact_plan(qwen2_folder)
    engine, replies = open_engine(plan), Replies()

    engine.propose(msgspec.structs.replace(plan, **changes), replies)
    engine.apply()

    assert replies.codes == [code]
    assert held_bytes(engine) == plan.ram_bytes
    assert answer(engine, QUESTION).stats.drive_bytes_read == 0


def test_placing_more_than_the_pc_has_refused(
    open_engine: OpenEngine, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, replies = open_engine(exact_plan(qwen2_folder, 3)), Replies()
    monkeypatch.setattr("runtime.generate.placing.free_ram_bytes", lambda: 4096)

    engine.propose(exact_plan(qwen2_folder), replies)
    engine.apply()

    assert replies.codes == [ErrorCode.RAM_NOT_FREE]
    assert held_bytes(engine) == exact_plan(qwen2_folder, 3).ram_bytes


def test_placing_waiting_at_close_is_forgotten(engine: TieredEngine, qwen2_folder: Path) -> None:
    replies = Replies()
    engine.propose(exact_plan(qwen2_folder, 3), replies)

    engine.close()
    engine.apply()

    assert replies.outcomes == []


def test_first_question_is_answered_before_anything_came_in_the_background(
    kernels: Kernels,
    open_engine: OpenEngine,
    qwen2_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = answer(open_engine(exact_plan(qwen2_folder)), QUESTION)
    monkeypatch.setattr("runtime.generate.loading.FIRST_EXPERTS_PER_LAYER", 1)
    monkeypatch.setattr(ReadLanes, "behind", lambda *_: Future())
    engine = TieredEngine(kernels)
    engine.load(exact_plan(qwen2_folder), ignore_load_progress, CancelToken())

    run = answer(engine, QUESTION)

    assert run.token_ids == expected.token_ids
    assert run.stats.tiers[0].misses > 0
    assert engine._parts is not None
    engine._parts.experts.check()
    engine.close()


CHANGE = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))


@pytest.fixture
def expected_ids(open_engine: OpenEngine, qwen2_folder: Path) -> list[int]:
    """What is answered with every expert in RAM."""
    return answer(open_engine(exact_plan(qwen2_folder)), QUESTION).token_ids


@pytest.fixture
def lasting_engine(open_engine: OpenEngine, qwen2_folder: Path) -> TieredEngine:
    """One engine for all examples of a property."""
    return open_engine(exact_plan(qwen2_folder, chunk_tokens=8))


@given(
    first=CHANGE,
    changes=st.dictionaries(st.integers(0, 30), CHANGE, max_size=12),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_placing_any_changes_at_any_steps_same_tokens(
    lasting_engine: TieredEngine,
    qwen2_folder: Path,
    expected_ids: list[int],
    first: tuple[int, ...],
    changes: dict[int, tuple[int, ...]],
) -> None:
    """One engine lives through all examples; each begins without a kept prefix."""
    base = exact_plan(qwen2_folder, chunk_tokens=8)

    def plan(slots: tuple[int, ...]) -> PlacementPlan:
        return msgspec.structs.replace(base, slots_per_layer=list(slots))

    engine = lasting_engine
    replies = Replies()
    engine.propose(plan(first), replies)
    engine.apply()
    assert engine._parts is not None
    engine._parts.kv.truncate(0)
    run = Run([])

    for step, event in enumerate(engine.start(1, QUESTION, GREEDY, CancelToken())):
        run.events.append(event)
        if step in changes:
            engine.propose(plan(changes[step]), replies)
    engine.apply()

    assert run.token_ids == expected_ids
    assert all(code is None for code in replies.codes)
    assert engine.wait_filled(60)
    experts = engine._parts.experts
    experts.begin_step()
    experts.check()
    last = replies.outcomes[-1][0].slots_per_layer
    assert sum(experts.slots_per_layer) == sum(last)
    assert experts.num_resident == sum(last)


def test_placing_resident_size_follows_the_budget(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine, replies = open_engine(exact_plan(qwen2_folder, 3)), Replies()
    assert engine._parts is not None
    ledger = engine._parts.ledger
    before = psutil.Process().memory_info().rss
    plans = [exact_plan(qwen2_folder, slots) for slots in (6, 3, 5, 1)]

    for turn in range(200):
        engine.propose(plans[turn % 4], replies)
        engine.apply()
        assert ledger.held_bytes <= plans[turn % 4].ram_bytes

    assert replies.codes == [None] * 200
    assert ledger.by_kind()[MemoryPart.EXPERTS] > 0
    assert psutil.Process().memory_info().rss - before < 8 * 1024 * 1024
    engine._parts.experts.check()
