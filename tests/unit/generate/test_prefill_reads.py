"""A prompt reads each expert once for each chunk and layer, in the order of the file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.kernels.base import Kernels
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.values import WeightFormat
from runtime.residency.lanes import DemandedReads, ReadLanes
from runtime.spec.tensors import ExpertId
from tests.support.engine_runs import answer, ignore_load_progress, user
from tests.support.hand_made_plans import exact_plan, prepared_plan

CHUNK_TOKENS = 16
QUESTION = [user("What does the larder hold, and who has been there? " * 3)]
ONE_TOKEN = SamplingSettings(temperature=0, max_tokens=1)


@pytest.mark.parametrize("is_prepared", [False, True])
def test_prefill_reads_each_expert_once_for_each_chunk_and_layer_in_order(
    kernels: Kernels,
    qwen2_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_prepared: bool,
) -> None:
    plan = exact_plan(qwen2_folder, 1, chunk_tokens=CHUNK_TOKENS)
    if is_prepared:
        plan = prepared_plan(qwen2_folder, tmp_path / "copy", WeightFormat.Q8_G32)
        plan = msgspec.structs.replace(plan, slots_per_layer=[1] * len(plan.slots_per_layer))
    engine = TieredEngine(kernels)
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine.wait_filled(60)
    parts = engine._parts
    assert parts is not None

    asked: list[tuple[int, list[ExpertId]]] = []
    forward, whole = parts.model.forward, ReadLanes.demand
    num_chunks = 0

    def counted_forward(*arguments: Any, **named: Any) -> Any:
        nonlocal num_chunks
        num_chunks += 1
        return forward(*arguments, **named)

    def noted(self: ReadLanes, work: Sequence[tuple[ExpertId, memoryview]]) -> DemandedReads:
        asked.append((num_chunks, [expert for expert, _ in work]))
        return whole(self, work)

    monkeypatch.setattr(parts.model, "forward", counted_forward)
    monkeypatch.setattr(ReadLanes, "demand", noted)
    before = engine.counters
    stats = answer(engine, QUESTION, ONE_TOKEN).stats
    spent = engine.counters.since(before)

    assert num_chunks == -(-stats.prompt_tokens // parts.home.chunk_tokens)
    assert is_prepared or num_chunks > 2
    reads = [(chunk, expert) for chunk, experts in asked for expert in experts]
    assert len(reads) == spent.expert_misses > 0
    assert reads == sorted(set(reads))
    places = [(chunk, parts.store.place_of(expert)) for chunk, expert in reads]
    assert places == sorted(places) or not is_prepared
    engine.close()
