"""Recording routing: what was noted is what is read, and nothing half done is kept."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.simulate.recorder import RoutingRecorder
from runtime.simulate.trace_files import read_trace

LAYERS = (1, 3, 4)


def chosen(draw: np.random.Generator, num_tokens: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ids and weights of a step, layer by layer."""
    return [
        (
            np.sort(draw.permuted(np.tile(np.arange(8), (num_tokens, 1)), axis=1)[:, :2]).astype(
                np.int32
            ),
            draw.random((num_tokens, 2)).astype(np.float32),
        )
        for _ in LAYERS
    ]


@given(answers=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), max_size=4))
def test_recorder_any_answers_are_read_as_they_were_noted(
    tmp_path_factory: pytest.TempPathFactory, answers: list[list[int]]
) -> None:
    folder = tmp_path_factory.mktemp("traces") / "mine"
    draw = np.random.default_rng(3)
    recorder = RoutingRecorder(folder, "Some model", 8, LAYERS, 2)
    noted = []
    for steps in answers:
        recorder.end_sequence()
        for num_tokens in steps:
            step = chosen(draw, num_tokens)
            for layer, (ids, weights) in zip(LAYERS, step, strict=True):
                recorder.note(layer, ids, weights)
            noted.append(step)
    recorder.end_sequence()
    if not answers:
        assert not folder.exists()
        return

    trace = read_trace(folder)

    assert trace.sequence_tokens == tuple(map(sum, answers))
    assert trace.layers == LAYERS
    assert not trace.is_ranked
    assert (trace.name, trace.origin.model) == ("mine", "Some model")
    assert trace.scores is not None
    for index in range(len(LAYERS)):
        ids = np.concatenate([step[index][0] for step in noted])
        weights = np.concatenate([step[index][1] for step in noted])
        assert (trace.ids[:, index] == ids).all()
        assert np.abs(trace.scores[:, index] / 255 - weights).max() <= 0.5 / 255 + 1e-6


def test_recorder_step_that_was_broken_off_is_forgotten(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    recorder = RoutingRecorder(tmp_path / "mine", "Some model", 8, LAYERS, 2)
    broken, whole = chosen(draw, 3), chosen(draw, 2)

    recorder.note(LAYERS[0], *broken[0])
    recorder.note(LAYERS[2], *broken[2])
    recorder.note(LAYERS[1], *broken[1])
    for layer, step in zip(LAYERS, whole, strict=True):
        recorder.note(layer, *step)
    recorder.end_sequence()

    assert read_trace(tmp_path / "mine").sequence_tokens == (2,)


def test_recorder_long_answer_is_written_in_parts_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.simulate.recorder.TOKENS_PER_PART", 4)
    draw = np.random.default_rng(5)
    recorder = RoutingRecorder(tmp_path, "Some model", 8, LAYERS, 2)
    for _ in range(3):
        for layer, step in zip(LAYERS, chosen(draw, 2), strict=True):
            recorder.note(layer, *step)

    assert read_trace(tmp_path).sequence_tokens == (4,)
    recorder.end_sequence()
    assert read_trace(tmp_path).sequence_tokens == (6,)


def test_recorder_folder_with_a_trace_is_refused_and_a_full_disk_is_told(tmp_path: Path) -> None:
    draw = np.random.default_rng(6)
    recorder = RoutingRecorder(tmp_path / "mine", "Some model", 8, LAYERS[:1], 2)
    (tmp_path / "mine").write_text("in the way")
    recorder.note(LAYERS[0], *chosen(draw, 1)[0])
    with pytest.raises(LarderError) as unwritable:
        recorder.end_sequence()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "trace.json").write_text("{}")

    with pytest.raises(LarderError) as taken:
        RoutingRecorder(tmp_path / "other", "Some model", 8, LAYERS, 2)

    assert unwritable.value.code is ErrorCode.DISK_NOT_WRITABLE
    assert taken.value.code is ErrorCode.SETTING_INVALID
