"""Guessing ahead: the same tokens with any of its settings, on several families."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.kernels.base import Kernels
from runtime.policy.catalogue import DEFAULT_POLICY
from runtime.residency.hints import Trust
from runtime.residency.trial import HintMode
from tests.support.engine_runs import GREEDY, Run, answer, ignore_load_progress, user
from tests.support.hand_made_plans import exact_plan
from tests.support.tiny_checkpoints import tiny_checkpoint
from tests.unit.generate.test_placing import Replies

FAMILIES = ("qwen2_moe", "mixtral", "olmoe")
CHUNK_TOKENS = 8
QUESTION = [user("What is the capital of France?")]


@pytest.fixture(scope="module")
def engines(kernels: Kernels, tiny_root: Path) -> Iterator[dict[tuple[str, str], TieredEngine]]:
    """An engine of each family and policy, for all examples."""
    made = {
        (family, policy): TieredEngine(kernels, policy=policy)
        for family in FAMILIES
        for policy in ("lru", DEFAULT_POLICY)
    }
    for (family, _), engine in made.items():
        plan = exact_plan(tiny_checkpoint(tiny_root, family), chunk_tokens=CHUNK_TOKENS)
        engine.load(plan, ignore_load_progress, CancelToken())
    yield made
    for engine in made.values():
        engine.close()


@pytest.fixture(scope="module")
def expected(engines: dict[tuple[str, str], TieredEngine]) -> dict[str, list[int]]:
    """What each family answers with every expert in RAM."""
    return {
        family: answer(engines[family, DEFAULT_POLICY], QUESTION).token_ids for family in FAMILIES
    }


@given(
    family=st.sampled_from(FAMILIES),
    policy=st.sampled_from(["lru", DEFAULT_POLICY]),
    num_slots=st.integers(1, 4),
    hints=st.tuples(st.sampled_from(list(HintMode)), st.sampled_from([0, 0.5, 0.8])),
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hints_any_settings_same_tokens(
    engines: dict[tuple[str, str], TieredEngine],
    expected: dict[str, list[int]],
    tiny_root: Path,
    family: str,
    policy: str,
    num_slots: int,
    hints: tuple[HintMode, float],
) -> None:
    engine, replies = engines[family, policy], Replies()
    parts = engine._parts
    assert parts is not None
    plan = exact_plan(tiny_checkpoint(tiny_root, family), chunk_tokens=CHUNK_TOKENS)
    slots = [num_slots] * len(plan.slots_per_layer)
    engine.propose(msgspec.structs.replace(plan, slots_per_layer=slots), replies)
    engine.apply()
    assert replies.codes == [None]
    assert engine.wait_filled(60)
    parts.kv.truncate(0)
    parts.experts.set_hints(hints[0])
    parts.experts._ram.hints.trust = Trust(hints[1])
    run = Run([])
    for event in engine.start(1, QUESTION, GREEDY, CancelToken()):
        run.events.append(event)
    assert run.token_ids == expected[family]
    parts.experts._ram.hints.withdraw()
    parts.experts.begin_step()
    parts.experts.check()


def test_hints_that_are_trusted_are_read_and_counted(kernels: Kernels, qwen2_folder: Path) -> None:
    engine = TieredEngine(kernels)
    engine.hints = HintMode.ALWAYS
    engine.load(exact_plan(qwen2_folder, 1), ignore_load_progress, CancelToken())
    assert engine._parts is not None
    engine._parts.experts._ram.hints.trust = Trust(0)
    answer(engine, QUESTION)
    counters = engine._counters
    assert counters.hints_useful + counters.hints_late + counters.hints_wasted > 0
    engine.close()
