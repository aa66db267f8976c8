"""Tests of the committed derived data and of its file form."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from resources.demo import derived
from resources.demo.derive.pack import save_derived
from resources.demo.failure import DemoBuildError
from resources.demo.split import SHARED, SplitShape, channels_by_expert

_DEMO = Path(derived.__file__).parent
_GATE_LIMIT_BYTES = 1 << 20


def test_committed_files_stay_below_the_size_limits() -> None:
    sizes = [(_DEMO / name).stat().st_size for name in derived.DERIVED_FILES]
    assert max(sizes) < _GATE_LIMIT_BYTES
    assert sum(sizes) < 3_000_000


def test_committed_data_split_every_layer_fully() -> None:
    data = derived.load_derived(_DEMO)
    data.shape.check(data.assignment.shape[1])
    for assignment, router in zip(data.assignment, data.routers, strict=True):
        shared, routed = channels_by_expert(assignment, data.shape)
        everything = np.concatenate([shared, *routed])
        np.testing.assert_array_equal(np.sort(everything), np.arange(len(assignment)))
        assert router.shape[0] == data.shape.num_experts
        assert np.isfinite(router).all()


def test_committed_data_leave_a_quarter_of_the_experts_idle() -> None:
    shape = derived.load_derived(_DEMO).shape
    assert shape.top_k * 4 <= shape.num_experts * 3


def test_saved_data_come_back_within_eight_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    shape = SplitShape(num_experts=2, expert_size=2, shared_size=1, top_k=1)
    assignment = np.asarray([[0, 1, SHARED, 1, 0], [SHARED, 0, 0, 1, 1]], np.uint8)
    routers = [rng.normal(size=(2, 6)).astype(np.float32) for _ in range(2)]
    save_derived(tmp_path, shape, assignment, routers)
    loaded = derived.load_derived(tmp_path)
    assert loaded.shape == shape
    np.testing.assert_array_equal(loaded.assignment, assignment)
    for router, given in zip(loaded.routers, routers, strict=True):
        wanted = given - given.mean(axis=0)  # what all experts share changes no order
        step = np.abs(wanted).max(axis=1, keepdims=True) / 127
        assert (np.abs(router - wanted) <= step * 0.501).all()


def test_load_derived_without_a_file_says_so(tmp_path: Path) -> None:
    shutil.copy(_DEMO / derived.DERIVED_FILES[0], tmp_path)
    with pytest.raises(DemoBuildError, match="cannot be read"):
        derived.load_derived(tmp_path)


def test_load_derived_of_other_bytes_says_so(tmp_path: Path) -> None:
    for name in derived.DERIVED_FILES:
        (tmp_path / name).write_bytes(b"\xff" * 64)
    with pytest.raises(DemoBuildError, match="cannot be read"):
        derived.load_derived(tmp_path)
