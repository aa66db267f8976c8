"""Trials: a group of matrices is rounded as a copy would have it, all else stays as published."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.generate import calibrating
from runtime.generate.calibrating import calibrate
from runtime.generate.loading import LoadedParts, Tools, load_parts
from runtime.generate.trial_pace import TrialPace
from runtime.generate.trials import NUM_PIECES, PIECE_TOKENS, TryingKernels, pieces_of
from runtime.inspect.folder import inspect_folder
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.reference import ReferenceKernels
from runtime.prepare.calibration import (
    Calibration,
    CalibrationStep,
    read_calibration,
    write_calibration,
)
from runtime.prepare.calibration_text import MIN_TEXT_TOKENS
from runtime.prepare.mixing import measure_formats
from runtime.prepare.prepare import NeverStops, prepare_model
from runtime.prepare.sensitivity import EVERYTHING, FINEST_FORMAT, group_of
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import PreparePhase
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets, WeightFormat
from runtime.spec.mix import Mix
from runtime.spec.tensors import ExpertId, ExpertLayout
from tests.support.hand_made_plans import exact_plan
from tests.support.mixed_gguf import write_mixed
from tests.support.spoilt_weights import spoilt_expert

_TEXT = "one two three four, the quick brown fox jumps over the lazy dog. " * 20
_TOKENS = 96


def _read(folder: Path, path: Path) -> Calibration:
    plan = exact_plan(folder, context_tokens=192)
    return calibrate(plan, _TEXT, _TOKENS, path, lambda *_: None, CancelToken())


def _logits(plan: PlacementPlan) -> torch.Tensor:
    tools = Tools.alone(choose_kernels())
    parts = load_parts(plan, tools, lambda *_: None, CancelToken())
    try:
        ids = parts.tokenizer.encode_text(_TEXT)[:_TOKENS]
        return _all_logits(parts, ids)
    finally:
        parts.close()


def _all_logits(parts: LoadedParts, ids: list[int]) -> torch.Tensor:
    parts.experts.begin_step()
    parts.kv.reserve(len(ids))
    hidden = parts.model.forward(ids, 0, parts.kv.layers)
    return torch.log_softmax(parts.model.logits(hidden).double(), dim=-1)


def _kl_of_copy(folder: Path, mix: Mix, out: Path) -> float:
    """What answers change by in a copy of a mix."""
    copy = prepare_model(inspect_folder(str(folder)), mix.most_common, str(out), mix=mix)
    plan = exact_plan(folder, context_tokens=192)
    true = _logits(plan)
    found = _logits(
        msgspec.structs.replace(
            plan,
            store_folder=copy.folder,
            expert_format=copy.expert_format,
            is_exact=False,
            budgets=Budgets(ram_bytes=1 << 28),
        )
    )
    return float((true.exp() * (true - found)).sum() / len(true))


def test_a_trial_of_everything_is_what_a_copy_of_that_format_does(
    qwen2_folder: Path, tmp_path: Path
) -> None:
    found = _read(qwen2_folder, tmp_path / "kept.npz")
    inspection = inspect_folder(str(qwen2_folder))
    measured = measure_formats(inspection, found, None, NeverStops())
    names = [part.name for part in measured.parts]
    mix = Mix(
        {name: FINEST_FORMAT for name in names if isinstance(name, ExpertId)},
        {name: FINEST_FORMAT for name in names if isinstance(name, str)},
        measured.importance,
    )
    expected = _kl_of_copy(qwen2_folder, mix, tmp_path / "copy")
    assert found.trials[EVERYTHING] == pytest.approx(expected, rel=0.02)
    assert measured.unavoidable == found.trials[EVERYTHING]


def test_a_trial_rounds_its_group_and_nothing_else(qwen2_folder: Path, tmp_path: Path) -> None:
    found = _read(qwen2_folder, tmp_path / "kept.npz")
    inspection = inspect_folder(str(qwen2_folder))
    spec = inspection.spec
    assert spec is not None
    measured = measure_formats(inspection, found, None, NeverStops())
    names = [part.name for part in measured.parts]
    assert set(found.trials) == {*(group_of(name, spec) for name in names), EVERYTHING}
    assert all(kl > 0 for kl in found.trials.values())
    # What all parts of a group err by in the tried format is what its trial showed.
    for group in set(found.trials) - {EVERYTHING}:
        errors = [
            one.error
            for part in measured.parts
            for one in part.choices
            if group_of(part.name, spec) == group and one.format is WeightFormat.Q2_G16
        ]
        assert sum(errors) == pytest.approx(found.trials[group])
    # A copy in which one layer's experts alone are in eight bits and two is the same trial, but for
    # what eight bits change.
    group = group_of(ExpertId(spec.moe_layers[-1], 0), spec)
    mix = Mix(
        {
            name: WeightFormat.Q2_G16 if group_of(name, spec) == group else FINEST_FORMAT
            for name in names
            if isinstance(name, ExpertId)
        },
        {},
        measured.importance,
    )
    expected = _kl_of_copy(qwen2_folder, mix, tmp_path / "copy")
    assert found.trials[group] == pytest.approx(expected, rel=0.2)


def test_trials_that_were_cut_off_go_on(qwen2_folder: Path, tmp_path: Path) -> None:
    whole = _read(qwen2_folder, tmp_path / "whole.npz")
    plan, path = exact_plan(qwen2_folder, context_tokens=192), tmp_path / "kept.npz"
    cancel = CancelToken()

    def stop(step: CalibrationStep) -> None:
        if step.phase is PreparePhase.TRYING_PARTS and step.done == 2:
            cancel.cancel()

    with pytest.raises(CancelledError):
        calibrate(plan, _TEXT, _TOKENS, path, stop, cancel)
    kept = read_calibration(path, plan.model_fingerprint)
    assert kept is not None
    assert (kept.is_read, kept.is_tried, kept.is_complete) == (True, False, False)
    assert len(kept.trials) == 2
    # What is kept is not tried again: it would not come to this.
    first = next(iter(kept.trials))
    write_calibration(path, dataclasses.replace(kept, trials={**kept.trials, first: 7.0}))
    again = _read(qwen2_folder, path)
    assert again.is_complete
    assert again.trials.pop(first) == 7.0
    assert list(again.trials) == [group for group in whole.trials if group != first]
    for group, kl in again.trials.items():
        assert kl == pytest.approx(whole.trials[group], rel=1e-6)


@pytest.mark.parametrize("other", ["F16", "Q4_0"])
def test_nothing_is_tried_of_a_gguf_file(tmp_path: Path, other: str) -> None:
    """No mix is made of it, though the largest of its experts is in plain numbers."""
    path = write_mixed(tmp_path / "m.gguf", lambda layer, _: "F16" if layer == 1 else other)
    found = _read(path, tmp_path / "kept.npz")
    assert (found.trials, found.is_tried, found.is_complete) == ({}, True, True)
    assert found.uses.any()


def test_a_trial_of_weights_that_are_no_numbers_names_them(
    qwen2_folder: Path, tmp_path: Path
) -> None:
    with (
        spoilt_expert(qwen2_folder, 0, 0, "up_proj") as (spoilt, place),
        pytest.raises(LarderError) as refused,
    ):
        _read(spoilt, tmp_path / "kept.npz")
    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert refused.value.parameters == {"place": place}


def test_trials_read_pieces_of_the_whole_text() -> None:
    assert pieces_of(range(5)) == [0, 1, 2, 3, 4]
    ids = pieces_of(range(8192))
    assert len(ids) == NUM_PIECES * PIECE_TOKENS
    assert (ids[0], ids[-1]) == (0, 8191)
    assert (np.diff(ids) >= 1).all()
    assert len(ids) >= MIN_TEXT_TOKENS


def test_a_trial_ends_at_the_next_layer_when_it_is_cancelled(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, path = exact_plan(qwen2_folder, context_tokens=192), tmp_path / "kept.npz"
    cancel, layers, experts = CancelToken(), [], TryingKernels.experts

    def counted(self: TryingKernels, *arguments: Any) -> None:
        if self.trial is not None:
            layers.append(self.layer)
            cancel.cancel()
        experts(self, *arguments)

    monkeypatch.setattr(TryingKernels, "experts", counted)
    with pytest.raises(CancelledError):
        calibrate(plan, _TEXT, _TOKENS, path, lambda *_: None, cancel)
    assert len(set(layers)) == 1
    kept = read_calibration(path, plan.model_fingerprint)
    assert kept is not None
    assert (kept.is_read, kept.trials) == (True, {})


def test_one_expert_at_a_time_lies_in_memory_rounded(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together: list[int] = []

    class Counting(ReferenceKernels):
        def experts(self, x: torch.Tensor, layout: ExpertLayout, *arguments: Any) -> None:
            if WeightFormat.Q2_G16 in layout.formats:
                together.append(len(arguments[0]))
            super().experts(x, layout, *arguments)

    monkeypatch.setattr(calibrating, "choose_kernels", Counting)
    _read(qwen2_folder, tmp_path / "kept.npz")
    assert set(together) == {1}


def test_progress_of_trials_that_go_on_begins_where_they_were(
    qwen2_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "kept.npz"
    whole = _read(qwen2_folder, path)
    plan = exact_plan(qwen2_folder, context_tokens=192)
    left = list(whole.trials)[-2:]
    kept = {group: kl for group, kl in whole.trials.items() if group not in left}
    write_calibration(path, dataclasses.replace(whole, trials=kept, is_tried=False))
    seen: list[CalibrationStep] = []
    calibrate(plan, _TEXT, _TOKENS, path, seen.append, CancelToken())
    assert seen[0] == CalibrationStep(PreparePhase.READING_TEXT, _TOKENS, _TOKENS, 0.0)
    total = len(whole.trials)
    assert [(step.done, step.total) for step in seen[1:]] == [
        (total - back, total) for back in (2, 1, 0)
    ]
    # Of what was tried before nobody knows how long it took.
    assert [step.seconds_left is None for step in seen[1:]] == [True, False, True]


def test_time_left_is_told_while_a_trial_goes_on(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "TELL_EVERY_S", 0.0)
    plan, seen = exact_plan(qwen2_folder, context_tokens=192), list[CalibrationStep]()
    calibrate(plan, _TEXT, _TOKENS, tmp_path / "kept.npz", seen.append, CancelToken())
    second = [step for step in seen if step.phase is PreparePhase.TRYING_PARTS and step.done == 1]
    # At its begin, at each layer and at the end of the last, all known from the first trial.
    spec = inspect_folder(str(qwen2_folder)).spec
    assert spec is not None
    assert len(second) > spec.num_layers
    assert all(step.per_s > 0 for step in second)


def test_pace_tells_reading_from_rounding() -> None:
    pace = TrialPace({"few": 10, "many": 1000, "all": 1010})
    assert pace.seconds_left(["few", "many", "all"], 0.0) is None
    pace.note("few", 6.0, 1.0)
    assert pace.seconds_left(["many", "all"], 0.0) == pytest.approx(2 * 5 + 201)
    pace.note("many", 34.0, 31.0)
    both = 4 + 1010 * 32 / 1010
    assert pace.seconds_left(["all"], 0.0) == pytest.approx(both)
    assert pace.seconds_left(["all"], 10.0) == pytest.approx(both - 10)
    assert pace.seconds_left(["all"], 100.0) == 0.0
