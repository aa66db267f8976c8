"""The engine records which experts it used, and nothing that was said."""

from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.generate.engine import TieredEngine
from runtime.kernels.base import Kernels
from runtime.protocol.errors import ErrorCode
from runtime.simulate.trace_files import read_trace
from tests.support.engine_runs import GREEDY, answer, ignore_load_progress, user
from tests.support.hand_made_plans import exact_plan


def test_recorded_answers_hold_every_use_and_change_nothing(
    tmp_path: Path, kernels: Kernels, qwen2_folder: Path
) -> None:
    plan = exact_plan(qwen2_folder, 2)
    plain = TieredEngine(kernels)
    plain.load(plan, ignore_load_progress, CancelToken())
    expected = answer(plain, [user("What is a larder?")], GREEDY).token_ids
    plain.close()
    engine = TieredEngine(kernels, routing_folder=tmp_path / "routing")
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine._parts is not None
    tally, experts = engine._parts.tally, engine._parts.experts

    first = answer(engine, [user("What is a larder?")], GREEDY)
    answer(engine, [user("And a cellar?")], GREEDY)
    uses = sum(tally.uses)
    assert experts.recorder is not None
    engine.close()

    trace = read_trace(tmp_path / "routing")
    assert first.token_ids == expected
    assert len(trace.sequence_tokens) == 2
    assert trace.sequence_tokens[0] >= first.stats.prompt_tokens + len(first.token_ids) - 1
    # A chunk uses an expert once, however many of its tokens chose it.
    assert trace.ids.size >= uses > 0


def test_recording_into_a_folder_with_a_trace_is_refused_and_the_model_is_closed(
    tmp_path: Path, kernels: Kernels, qwen2_folder: Path
) -> None:
    (tmp_path / "trace.json").write_text("{}")
    engine = TieredEngine(kernels, routing_folder=tmp_path)

    with pytest.raises(LarderError) as refused:
        engine.load(exact_plan(qwen2_folder), ignore_load_progress, CancelToken())

    assert refused.value.code is ErrorCode.SETTING_INVALID
    with pytest.raises(LarderError) as missing:
        engine.wait_filled(0)
    assert missing.value.code is ErrorCode.NO_MODEL_LOADED
    engine.close()
