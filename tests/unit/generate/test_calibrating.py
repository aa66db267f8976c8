"""Reading a text with a model: what is counted, and that cut off work goes on."""

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from runtime.cli.models import EXIT_CANCELLED
from runtime.cli.program import run_program
from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError, report_of
from runtime.generate import calibrating
from runtime.generate.calibrating import WatchingKernels, calibrate
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.inspect.folder import inspect_folder
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.reference import ReferenceKernels
from runtime.kernels.tensor_formats import PLAIN_TYPES
from runtime.prepare.calibration import (
    Calibration,
    CalibrationStep,
    Identity,
    read_calibration,
)
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import PreparePhase
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.sentences import sentence
from runtime.protocol.values import WeightFormat
from runtime.service import engine_loader
from runtime.spec.tensors import expert_layout
from runtime.store.checkpoint import CheckpointStore
from runtime.tokenizer.chat import ChatTokenizer
from tests.support.hand_made_plans import exact_plan
from tests.support.kernel_inputs import random_rows, random_slots
from tests.support.plan_cases import spec

_TEXT = "one two three four, the quick brown fox jumps over the lazy dog. " * 40
_TOKENS = 160


def _ignore(step: CalibrationStep) -> None:
    del step


def _read(folder: Path, path: Path, cancel: CancelToken | None = None) -> Calibration:
    plan = exact_plan(folder, context_tokens=192)
    return calibrate(plan, _TEXT, _TOKENS, path, _ignore, cancel or CancelToken())


def test_uses_and_squares_are_those_of_the_text(qwen2_folder: Path, tmp_path: Path) -> None:
    found = _read(qwen2_folder, tmp_path / "kept.npz")
    spec = inspect_folder(str(qwen2_folder)).spec
    assert spec is not None
    per_layer = found.uses.sum(axis=1)
    assert per_layer.tolist() == [_TOKENS * spec.top_k] * len(spec.moe_layers)
    assert (found.outputs[found.uses == 0] == 0).all()
    assert (found.outputs[found.uses > 0] > 0).all()
    assert (found.hidden.sum(axis=2) > 0).tolist() == (found.uses > 0).tolist()
    assert found.stream.tolist() == [_TOKENS] * spec.num_layers
    # What enters the first layer is the embedding of the tokens and nothing else.
    first = found.dense["model.layers.0.self_attn.q_proj.weight"][:-1]
    assert first == pytest.approx(_first_inputs(qwen2_folder), rel=1e-3)
    name = f"model.layers.{spec.moe_layers[0]}.self_attn.q_proj.weight"
    assert found.dense[name].shape == (spec.hidden_size + 1,)
    assert (found.dense[name] > 0).all()


@pytest.mark.parametrize("start", ["", " " * 20_000])
def test_of_a_large_text_no_more_is_cut_into_tokens_than_is_read(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    plan, lengths = exact_plan(qwen2_folder, context_tokens=192), list[int]()
    encode = ChatTokenizer.encode_text

    def noted(tokenizer: ChatTokenizer, text: str) -> list[int]:
        lengths.append(len(text))
        return encode(tokenizer, text)

    def read(name: str, text: str) -> tuple[str, int]:
        path = tmp_path / name
        found = calibrate(plan, text, _TOKENS, path, _ignore, CancelToken()).identity
        return found.text, found.total_tokens

    whole = read("whole.npz", start + _TEXT)
    monkeypatch.setattr(ChatTokenizer, "encode_text", noted)

    assert read("large.npz", start + _TEXT * 1000) == whole
    assert sum(lengths) < 4 * len(start + _TEXT)


def _first_inputs(folder: Path) -> np.ndarray:
    """What the first layer's matrices are given: squares by channel, each token by its stream."""
    store = CheckpointStore(inspect_folder(str(folder)))
    plain: list[torch.Tensor] = []
    try:
        for name in ("model.embed_tokens.weight", "model.layers.0.input_layernorm.weight"):
            entry = store.dense_tensors[name]
            data = bytearray(entry.num_bytes)
            store.read_tensor(entry, memoryview(data))
            numbers = torch.frombuffer(data, dtype=PLAIN_TYPES[entry.format])
            plain.append(numbers.view(entry.shape).float())
    finally:
        store.close()
    ids = ChatTokenizer.load(folder).encode_text(_TEXT)[:_TOKENS]
    rows = plain[0][ids]
    squares = rows.square()
    means = squares.mean(dim=1, keepdim=True)
    given = squares / (means + 1e-6) * plain[1].square()
    return (given / squares.sum(dim=1, keepdim=True)).sum(dim=0).double().numpy()


def test_each_token_counts_by_its_stream_and_what_is_added_to_it() -> None:
    small = spec(hidden_size=2, num_layers=1, num_experts=2, top_k=1, expert_width=2)
    kernels = WatchingKernels(ReferenceKernels())
    found = calibrating._nothing(Identity("f", "t", 3), small)
    matrices = {
        name: Matrix.from_tensor(10 * torch.eye(2))
        for name in ("layers.0.q_proj.weight", "layers.0.o_proj.weight")
    }
    kernels.watch(found, small, matrices)
    kernels.enter(0)
    # The second token's stream is a thousand times as large; the third has none.
    stream = torch.tensor([[1.0, 2.0], [1000.0, 0.0], [0.0, 0.0]])
    kernels.rms_norm(stream, torch.ones(2), 1e-6)
    given = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    for matrix in matrices.values():
        kernels.linear(given, matrix)
    assert found.stream.tolist() == [3]
    inner, end = (found.dense[name] for name in matrices)
    assert inner == pytest.approx([1 / 5 + 1e-6, 1e-6, 100 / 5 + 200e-6])
    # What is added is 10 to a stream of the square 5, nearly all of it, and to none, all of it.
    assert end == pytest.approx(
        [1 / 105 + 1e-6 + 1 / 100, 1e-6, 100 / 105 + 200 / 1_000_200 + 1], rel=1e-3
    )


@pytest.mark.parametrize("num_parts", [2, 5])
def test_experts_that_come_in_parts_count_as_together(num_parts: int) -> None:
    small = spec(hidden_size=32, num_layers=1, num_experts=5, top_k=3, expert_width=16)
    layout = expert_layout(WeightFormat.F32, 32, 16)
    slots, x = random_slots(layout, 5), random_rows(7, 32)
    ids, weights = ReferenceKernels().route(random_rows(7, 5, seed=4), 3, is_normalised=True)

    def counted(parts: list[list[tuple[int, Slot]]]) -> Calibration:
        kernels = WatchingKernels(ReferenceKernels())
        found = calibrating._nothing(Identity("f", "t", 7), small)
        kernels.watch(found, small, {})
        kernels.enter(0)
        kernels.rms_norm(x, torch.ones(32), 1e-6)
        for part in parts:
            kernels.experts(x, layout, part, ids, weights, torch.zeros(7, 32))
        kernels.enter(1)
        return found

    once = counted([slots])
    parts = counted([slots[first::num_parts] for first in range(num_parts)])
    assert int(once.uses.sum()) == 21
    assert (parts.uses == once.uses).all()
    for name in ("inputs", "hidden", "outputs"):
        np.testing.assert_allclose(getattr(parts, name), getattr(once, name), rtol=1e-6)


def test_work_that_was_cut_off_goes_on(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "SEGMENT_TOKENS", 32)
    whole = _read(qwen2_folder, tmp_path / "whole.npz")
    path, cancel = tmp_path / "kept.npz", CancelToken()

    def stop(step: CalibrationStep) -> None:
        if step.done >= 64:
            cancel.cancel()

    plan = exact_plan(qwen2_folder, context_tokens=192)
    with pytest.raises(CancelledError):
        calibrate(plan, _TEXT, _TOKENS, path, stop, cancel)
    kept = read_calibration(path, plan.model_fingerprint)
    assert kept is not None
    assert (kept.num_tokens, kept.is_complete) == (64, False)
    seen: list[CalibrationStep] = []
    again = calibrate(plan, _TEXT, _TOKENS, path, seen.append, CancelToken())
    read = [step for step in seen if step.phase is PreparePhase.READING_TEXT]
    assert [step.done for step in read] == [64, 96, 128, 160]
    assert {step.total for step in read} == {_TOKENS}, "tokens of trials are none of the text's"
    # What was read before tells nothing of how fast reading is.
    assert [step.seconds_left is None for step in read] == [True, False, False, False]
    num_groups = len(whole.trials)
    tried = [step for step in seen if step.phase is PreparePhase.TRYING_PARTS]
    assert seen == read + tried
    assert [step.done for step in tried] == list(range(num_groups + 1))
    assert {step.total for step in tried} == {num_groups}
    assert again.is_complete
    assert (again.uses == whole.uses).all()
    for one, other in ((again.outputs, whole.outputs), (again.hidden, whole.hidden)):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    # Finished work is not done again, other work is.
    seen.clear()
    calibrate(plan, _TEXT, _TOKENS, path, seen.append, CancelToken())
    assert seen == [CalibrationStep(PreparePhase.READING_TEXT, _TOKENS, _TOKENS, 0.0)]
    assert read_calibration(path, "another model") is None


def test_what_a_drive_broke_off_is_read_anew(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "SEGMENT_TOKENS", 32)
    monkeypatch.setattr(calibrating, "KEEP_EVERY_S", 0.0)
    whole = _read(qwen2_folder, tmp_path / "whole.npz")
    read_segment, num_left = calibrating._read_segment, 2

    def fail(parts: Any, kernels: WatchingKernels, ids: Any, cancel: CancelToken) -> None:
        nonlocal num_left
        num_left -= 1
        read_segment(parts, kernels, ids, cancel)
        if num_left < 0:
            raise OSError(5, "the drive went away when the sums were added up")

    path = tmp_path / "kept.npz"
    monkeypatch.setattr(calibrating, "_read_segment", fail)
    with pytest.raises(OSError, match="went away"):
        _read(qwen2_folder, path)
    monkeypatch.setattr(calibrating, "_read_segment", read_segment)
    kept = read_calibration(path, whole.identity.fingerprint)
    assert kept is not None
    assert kept.num_tokens == 64
    again = _read(qwen2_folder, path)
    assert (again.uses == whole.uses).all()
    np.testing.assert_allclose(again.outputs, whole.outputs, rtol=1e-6)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, ErrorCode.DISK_FULL),
        (errno.EACCES, ErrorCode.DISK_NOT_WRITABLE),
        (errno.EIO, ErrorCode.COPY_WRITE_FAILED),
    ],
)
def test_a_drive_that_takes_no_more_is_told(
    qwen2_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: ErrorCode,
) -> None:
    def fail(*arguments: object, **more: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(np, "savez", fail)
    path = tmp_path / "calibrations" / "kept.npz"
    with pytest.raises(LarderError) as refused:
        _read(qwen2_folder, path)
    assert refused.value.code is code
    assert refused.value.parameters["folder"] == str(path.parent)
    assert list(path.parent.iterdir()) == []


def test_work_cut_off_at_once_leaves_nothing(qwen2_folder: Path, tmp_path: Path) -> None:
    cancel = CancelToken()
    plan = exact_plan(qwen2_folder, context_tokens=192)
    with pytest.raises(CancelledError):
        calibrate(plan, _TEXT, _TOKENS, tmp_path / "kept.npz", lambda *_: cancel.cancel(), cancel)
    assert not (tmp_path / "kept.npz").exists()


def _cut_off_in_a_layer(folder: Path, path: Path, num_layers: int) -> list[int]:
    """Have reading cancelled when so many layers were entered; return all that were."""
    entered: list[int] = []
    cancel, enter = CancelToken(), WatchingKernels.enter

    def count(self: WatchingKernels, layer: int) -> None:
        entered.append(layer)
        if len(entered) == num_layers:
            cancel.cancel()
        enter(self, layer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WatchingKernels, "enter", count)
        with pytest.raises(CancelledError):
            _read(folder, path, cancel)
    return entered


def test_reading_ends_at_the_next_layer_where_nothing_is_lost(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "SEGMENT_TOKENS", 32)
    path, fingerprint = tmp_path / "kept.npz", exact_plan(qwen2_folder).model_fingerprint
    assert _cut_off_in_a_layer(qwen2_folder, path, 2) == [0, 1]
    assert not path.exists()
    # The first segment is not kept yet: the second one is read to its end, and then both are.
    assert _cut_off_in_a_layer(qwen2_folder, path, 6) == [0, 1, 2, 3] * 2
    kept = read_calibration(path, fingerprint)
    assert kept is not None
    assert kept.num_tokens == 64
    monkeypatch.setattr(calibrating, "KEEP_EVERY_S", 0.0)
    assert _cut_off_in_a_layer(qwen2_folder, path, 6) == [0, 1, 2, 3, 0, 1]
    kept = read_calibration(path, fingerprint)
    assert kept is not None
    assert kept.num_tokens == 96


@pytest.mark.parametrize("kind", ["inputs", "hidden", "outputs", "stream", "dense/"])
def test_sums_that_are_no_numbers_are_none(qwen2_folder: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "kept.npz"
    fingerprint = _read(qwen2_folder, path).identity.fingerprint
    with np.load(path) as file:
        arrays = {name: file[name].copy() for name in file.files}
    name = next(name for name in arrays if name.startswith(kind))
    np.savez(path, **arrays)
    assert read_calibration(path, fingerprint) is not None
    arrays[name].flat[0] = np.nan
    np.savez(path, **arrays)
    assert read_calibration(path, fingerprint) is None


def test_a_damaged_file_is_begun_anew(qwen2_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    whole = _read(qwen2_folder, path)
    path.write_bytes(path.read_bytes()[:-100])
    assert read_calibration(path, whole.identity.fingerprint) is None
    assert (_read(qwen2_folder, path).uses == whole.uses).all()


def test_a_text_that_tells_nothing_is_refused_with_its_name(
    qwen2_folder: Path, tmp_path: Path
) -> None:
    plan = exact_plan(qwen2_folder, context_tokens=192)
    kept, token = tmp_path / "kept.npz", CancelToken()
    with pytest.raises(LarderError) as refused:
        calibrate(plan, "short", _TOKENS, kept, _ignore, token, "/texts/mine.txt")
    assert refused.value.code is ErrorCode.TEXT_INVALID
    text = sentence(report_of(refused.value))
    assert text.startswith("/texts/mine.txt cannot be used as the text that a model reads: it has ")
    assert text.endswith("Choose a file of plain text, saved as UTF-8, of at least 100 words.")
    with pytest.raises(LarderError) as refused:
        calibrate(plan, _TEXT, 63, kept, _ignore, token)
    assert refused.value.parameters["name"] == "--tokens"
    assert not kept.exists()


def test_the_command_tells_what_it_learnt(
    qwen2_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path))
    text = tmp_path / "text.txt"
    text.write_text(_TEXT, encoding="utf-8")
    arguments = ["calibrate", str(qwen2_folder), "--tokens", str(_TOKENS), "--json"]
    assert run_program([*arguments, "--text", str(text)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tokens"] == _TOKENS
    assert Path(told["file"]).is_relative_to(tmp_path / "data" / "calibrations")
    text.write_bytes(b"\xff\xfe\xff")
    assert run_program([*arguments, "--text", str(text)]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "text_invalid"
    assert str(text) in error["sentence"]


def test_a_text_is_read_without_a_card_where_there_is_one(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a card computes would not be seen."""
    profile = tmp_path / "machine.json"
    profile.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 10}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(profile))
    monkeypatch.setenv("LARDER_HOME", str(tmp_path))
    devices: list[str] = []

    def note(plan: PlacementPlan, *arguments: Any) -> Calibration:
        devices.append(plan.device)
        return calibrate(plan, *arguments)

    monkeypatch.setattr(engine_loader, "calibrate", note)
    assert run_program(["calibrate", str(qwen2_folder), "--tokens", "64", "--json"]) == 0
    assert devices == ["cpu"]


def test_what_was_read_before_counts_for_no_rate(
    qwen2_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path))
    monkeypatch.setattr("runtime.cli.calibrating.USUAL_TOKENS", 64)
    text = tmp_path / "text.txt"
    text.write_text(_TEXT, encoding="utf-8")
    arguments = ["prepare", str(qwen2_folder), "--mix", "0.000001", "--progress-json"]
    rates = []
    for _ in range(2):
        run_program([*arguments, "--text", str(text)])
        events = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        rates.append(
            [each["bytes_per_s"] for each in events if each.get("phase") == "reading_text"]
        )
    assert rates[0][-1] > 0
    assert rates[1] == [0.0]


@pytest.mark.parametrize(
    ("steps", "shown", "kept"),
    [
        ([], "", "what was done before is kept"),
        (
            [CalibrationStep(PreparePhase.READING_TEXT, 512, 8192, 59.0)],
            "reading the text: 512 of 8192 tokens, 2 min 10 s left for reading",
            "512 tokens are kept and not read again",
        ),
        (
            [
                CalibrationStep(PreparePhase.READING_TEXT, 8192, 8192, 59.0),
                CalibrationStep(PreparePhase.TRYING_PARTS, 0, 18, 0.0),
                CalibrationStep(PreparePhase.TRYING_PARTS, 5, 18, 0.001),
            ],
            "trying which parts answers depend on: 5 of 18 parts, 3 h 36 min left",
            "the text that was read and 5 of 18 trials are kept",
        ),
    ],
)
def test_the_command_tells_its_phase_and_what_is_kept_when_it_is_stopped(
    qwen2_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    steps: list[CalibrationStep],
    shown: str,
    kept: str,
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path))
    written: list[str] = []
    monkeypatch.setattr(
        "runtime.cli.screen.ProgressLine.write", lambda _, text: written.append(text)
    )

    def stopped(*arguments: Any) -> Calibration:
        report = arguments[4]
        for step in steps:
            report(step)
        raise CancelledError

    monkeypatch.setattr(engine_loader, "calibrate", stopped)
    assert run_program(["calibrate", str(qwen2_folder)]) == EXIT_CANCELLED
    assert capsys.readouterr().err == f"larderctl: stopped; {kept}\n"
    assert written[-1:] == ([shown] if shown else [])
    assert not any("tokens, 0 s" in text for text in written)
