"""The fixed part of layers as recordings: the same tokens, and piece by piece where they fail."""

from pathlib import Path

import pytest
import torch

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.kernels.fixed import FixedPlace
from runtime.kernels.kv import KvPages
from runtime.kernels.layer_graphs import FIRST_LENGTH, PLAIN_TOKENS, _length_of
from runtime.kernels.reference import ReferenceKernels
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.telemetry import NoteCode
from tests.support.engine_runs import Run, answer, ignore_load_progress, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.support.pretended_graphs import Bend, PretendedGraphs, use_card_that_records
from tests.support.tiny_checkpoints import tiny_checkpoint
from tests.unit.generate.test_placing import Replies

QUESTION = [user("What is the capital of France?")]
LONG = SamplingSettings(temperature=0.0, max_tokens=40)
FAMILIES = ["qwen2_moe", "qwen3_moe", "gpt_oss", "deepseek_v2", "glm4_moe", "gemma4_text"]
REFERENCE = ReferenceKernels()


def engine_with(plan: object) -> TieredEngine:
    engine = TieredEngine(REFERENCE)
    engine.load(plan, ignore_load_progress, CancelToken())  # type: ignore[arg-type]
    assert engine.wait_filled(60)
    return engine


def alone(folder: Path) -> Run:
    engine = engine_with(exact_plan(folder))
    run = answer(engine, QUESTION, LONG)
    engine.close()
    return run


@pytest.mark.parametrize("name", FAMILIES)
def test_recorded_layers_answer_as_the_processor_alone(
    tiny_root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tiny_checkpoint(tiny_root, name)
    expected = alone(folder)
    recorder = PretendedGraphs()
    use_card_that_records(monkeypatch, recorder)
    engine = engine_with(device_plan(folder, 3, 2, "torch:0"))
    home = engine._parts.home  # type: ignore[union-attr]
    num_layers = home.kv.layers

    run = answer(engine, QUESTION, LONG)

    assert run.token_ids == expected.token_ids
    assert home.graphs is not None
    assert home.graphs.failure is None
    assert home.graphs.num_recorded == recorder.num_recorded == len(num_layers)
    num_plain = PLAIN_TOKENS + 1
    once = len(num_layers) * (len(run.token_ids) - 1 - num_plain)
    assert recorder.num_replayed >= once > 0
    engine.close()
    assert home.graphs.num_recorded == 0


def test_longer_conversation_is_recorded_anew_and_stays_right(
    qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.kernels.layer_graphs.FIRST_LENGTH", 32)
    expected = alone(qwen2_folder)
    recorder = PretendedGraphs()
    use_card_that_records(monkeypatch, recorder)
    engine = engine_with(device_plan(qwen2_folder, 3, 2, "torch:0"))

    run = answer(engine, QUESTION, LONG)

    assert run.token_ids == expected.token_ids
    assert run.stats.prompt_tokens + PLAIN_TOKENS < 32 < len(run.token_ids)
    assert recorder.num_recorded == 2 * len(engine._parts.kv.layers)  # type: ignore[union-attr]
    engine.close()


def test_layers_whose_keys_move_to_ram_are_computed_there_and_recorded_when_they_return(
    qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(qwen2_folder)
    recorder = PretendedGraphs()
    use_card_that_records(monkeypatch, recorder)
    plans = [device_plan(qwen2_folder, 3, 2, "torch:0", ram_kv_layers=kv) for kv in ((), (0,), ())]
    engine, replies = engine_with(plans[0]), Replies()
    before, num_layers = 0, len(engine._parts.kv.layers)  # type: ignore[union-attr]
    for plan, num_recorded in zip(plans, (num_layers, 0, 1), strict=True):
        engine.propose(plan, replies)
        engine.apply()
        replayed = recorder.num_replayed
        engine._parts.kv.truncate(0)  # type: ignore[union-attr]

        assert answer(engine, QUESTION, LONG).token_ids == expected.token_ids

        assert recorder.num_recorded - before == num_recorded
        before = recorder.num_recorded
        assert recorder.num_replayed > replayed
    assert replies.codes == [None] * len(plans)
    engine.close()


@pytest.mark.expects_log("runtime.kernels.layer_graphs", "WARNING")
@pytest.mark.parametrize(
    ("bend", "fault", "why"),
    [
        (lambda results: results[0].add_(0.5), None, "is off by"),
        (lambda results: results[1].add_(1), None, "is off by inf"),
        (lambda results: results[0].fill_(float("nan")), None, "is off by nan"),
        (None, RuntimeError("operation not permitted when stream is capturing"), "not permitted"),
        (None, torch.OutOfMemoryError("full"), "OutOfMemoryError"),
    ],
)
def test_recordings_that_fail_are_told_and_answers_stay(
    qwen2_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    bend: Bend | None,
    fault: Exception | None,
    why: str,
) -> None:
    expected = alone(qwen2_folder)
    recorder = PretendedGraphs(bend, fault)
    use_card_that_records(monkeypatch, recorder)
    engine = engine_with(device_plan(qwen2_folder, 3, 2, "torch:0"))

    run = answer(engine, QUESTION, LONG)
    notes = [note.code for note in engine.sample(0.1).notes]
    again = answer(engine, QUESTION, LONG)
    later = [note.code for note in engine.sample(0.1).notes]

    assert run.token_ids == again.token_ids == expected.token_ids
    graphs = engine._parts.home.graphs  # type: ignore[union-attr]
    assert graphs is not None
    assert why in (graphs.failure or "")
    assert recorder.num_replayed <= 1
    assert notes.count(NoteCode.CARD_STARTS_PIECES) == 1
    assert NoteCode.CARD_STARTS_PIECES not in later
    engine.close()


@pytest.mark.parametrize(
    ("length", "position", "window", "has_sinks"),
    [(64, 0, 0, False), (64, 37, 0, True), (64, 63, 8, False), (32, 20, 8, True)],
)
def test_fixed_attention_is_that_of_the_reference(
    length: int, position: int, window: int, has_sinks: bool
) -> None:
    generator = torch.Generator().manual_seed(position)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    keys, values = drawn(64, 2, 8), drawn(64, 2, 8)
    pages, fixed = KvPages(16, 2, 8, "torch:0"), KvPages(16, 2, 8, "torch:0")
    pages.extend([(keys[at : at + 16], values[at : at + 16]) for at in range(0, 64, 16)])
    fixed.whole = (keys.clone(), values.clone())
    q, sinks = drawn(1, 6, 8), drawn(6) if has_sinks else None
    own = (drawn(1, 2, 8), drawn(1, 2, 8))
    place = FixedPlace(torch.tensor([position]), length)
    REFERENCE.store_kv(pages, position, *own)
    expected = REFERENCE.attention(q, pages, position, scale=0.4, window=window, sinks=sinks)

    place.store(fixed, *own)
    found = place.attention(q, fixed, scale=0.4, window=window, sinks=sinks)

    torch.testing.assert_close(found, expected)
    assert torch.equal(fixed.gather(0, position + 1)[0], pages.gather(0, position + 1)[0])


def test_length_grows_by_doubling_up_to_all_there_is() -> None:
    lengths = [_length_of(seen, 1000) for seen in (1, 256, 257, 512, 513, 1000)]

    assert lengths == [FIRST_LENGTH, 256, 512, 512, 1000, 1000]
