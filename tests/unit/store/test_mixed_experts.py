"""Experts of GGUF files whose matrices are of several kinds: each comes in its own format."""

from pathlib import Path

import numpy as np
import pytest

from runtime.inspect.folder import inspect_folder
from runtime.kernels.formats import unpack
from runtime.protocol.values import WeightFormat
from runtime.spec.gguf import EXACT_KINDS, HOME, GgufKind
from runtime.spec.tensors import ExpertId, ExpertPart
from runtime.store.checkpoint import CheckpointStore
from tests.support.mixed_gguf import (
    KINDS,
    NUM_EXPERTS,
    NUM_LAYERS,
    all_eight,
    expert_rows,
    numbers_of,
    q4_k_m,
    with_plain,
    write_mixed,
)


@pytest.mark.parametrize("name", KINDS)
def test_every_matrix_stands_for_the_numbers_of_the_library(tmp_path: Path, name: str) -> None:
    kind_of = KINDS[name]
    inspection = inspect_folder(str(write_mixed(tmp_path / "m.gguf", kind_of)))
    assert not inspection.report.problems
    store = CheckpointStore(inspection)
    for expert in inspection.experts:
        layout = store.layout_of(expert)
        room = np.zeros(store.layout.record_bytes, np.uint8)
        store.read_expert(expert, room.data)
        for part in ExpertPart:
            kind, matrix = GgufKind[kind_of(expert.layer, part)], layout[part]
            assert matrix.format is HOME[kind]
            place = slice(matrix.offset_bytes, matrix.offset_bytes + matrix.num_bytes)
            found = unpack(matrix.format, room[place], matrix.rows, matrix.columns)
            expected = numbers_of(kind, expert_rows(expert, part, kind.name))
            if kind in EXACT_KINDS:
                np.testing.assert_array_equal(found, expected)
                continue
            groups = expected.reshape(len(expected), -1, 32)
            # Half a level; tiny scales are as coarse as f16 is there.
            bound = np.abs(groups).max(axis=2, keepdims=True) / 254 * 1.01 + 1e-7
            assert (np.abs(found.reshape(groups.shape) - groups) <= bound).all()
        # Nothing is written behind the record: others lie there.
        assert not room[layout.record_bytes :].any()
    store.close()


def test_experts_of_a_layer_share_a_layout_and_layers_have_their_own_sizes(tmp_path: Path) -> None:
    inspection = inspect_folder(str(write_mixed(tmp_path / "m.gguf", q4_k_m)))
    store = CheckpointStore(inspection)
    layouts = [
        {id(store.layout_of(ExpertId(layer, expert))) for expert in range(NUM_EXPERTS)}
        for layer in range(NUM_LAYERS)
    ]
    assert [len(each) for each in layouts] == [1] * NUM_LAYERS
    sizes = [store.layout_of(ExpertId(layer, 0)).record_bytes for layer in range(NUM_LAYERS)]
    assert sizes[0] == sizes[1] < sizes[2] == sizes[3] == store.layout.record_bytes
    mixed = inspection.report.mixed_experts
    assert mixed is not None
    assert mixed.records_bytes == NUM_EXPERTS * sum(sizes)
    assert mixed.slot_bytes == sizes
    assert max(sizes) == store.layout.record_bytes
    store.close()


def test_report_says_in_which_formats_experts_are_and_how_many_bits_that_is(
    tmp_path: Path,
) -> None:
    report = inspect_folder(str(write_mixed(tmp_path / "m.gguf", q4_k_m))).report
    mixed, matrix = report.mixed_experts, 256 * 512
    assert mixed is not None
    assert report.stored_format is WeightFormat.Q4K_G32
    assert report.gguf_kinds == ["Q4_K", "Q6_K", "F32"]
    # Ten matrices of twelve are in Q4_K.
    experts = NUM_EXPERTS * matrix
    assert mixed.format_bytes == {
        WeightFormat.Q4K_G32: experts * 10 * 144 // 256,
        WeightFormat.Q6K_G16: experts * 2 * 210 // 256,
    }
    assert list(mixed.format_bytes) == [WeightFormat.Q4K_G32, WeightFormat.Q6K_G16]
    # As in the file.
    assert mixed.bits == pytest.approx((10 * 4.5 + 2 * 6.5625) / 12)
    assert report.expert_bytes == matrix * (10 * 144 + 2 * 210) // 256 // NUM_LAYERS


def test_kinds_that_become_one_format_are_not_mixed(tmp_path: Path) -> None:
    report = inspect_folder(str(write_mixed(tmp_path / "m.gguf", all_eight))).report
    assert report.mixed_experts is None
    assert report.stored_format is WeightFormat.Q8_G32
    # What the drive reads is still that of both kinds.
    assert report.expert_bytes == 256 * 512 * (10 * 20 + 2 * 24) // 32 // NUM_LAYERS


def test_of_formats_with_as_many_weights_that_of_more_bits_is_named(tmp_path: Path) -> None:
    report = inspect_folder(str(write_mixed(tmp_path / "m.gguf", with_plain))).report
    assert report.mixed_experts is not None
    # Three matrices in f16, and three in Q4_K.
    assert report.stored_format is WeightFormat.F16
