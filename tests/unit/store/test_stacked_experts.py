"""Experts that are stacked in one tensor, fused, taking turns or turned: read one by one."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import ExpertId, ExpertPart, Weave
from runtime.store.checkpoint import CheckpointStore
from tests.support.family_folders import spec_of, tensor_values, write_family

FUSED = "model.layers.1.block_sparse_moe.input_linear.weight"
DOWN = "model.layers.1.block_sparse_moe.output_linear.weight"
EXPERT = ExpertId(1, 3)


def read(inspection: Inspection) -> tuple[dict[ExpertPart, np.ndarray], int]:
    """The matrices of the expert as numbers, and the bytes that were read for it."""
    store = CheckpointStore(inspection, prefers_direct=False)
    record = bytearray(store.layout.record_bytes)
    before = store.num_bytes_read
    store.read_expert(EXPERT, memoryview(record))
    num_bytes = store.num_bytes_read - before
    store.close()
    found = {}
    for part, layout in store.layout.parts.items():
        data = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        found[part] = wide.view(np.float32).reshape(layout.rows, layout.columns)
    return found, num_bytes


def test_stacked_expert_is_read_alone(tmp_path: Path) -> None:
    values = tensor_values("granitemoe")
    inspection = inspect_folder(str(write_family(tmp_path / "m", "granitemoe", values)))
    assert inspection.report.is_runnable, inspection.report.problems
    found, num_bytes = read(inspection)

    width = spec_of("granitemoe").expert_width
    np.testing.assert_array_equal(found[ExpertPart.GATE], values[FUSED][3, :width])
    np.testing.assert_array_equal(found[ExpertPart.UP], values[FUSED][3, width:])
    np.testing.assert_array_equal(found[ExpertPart.DOWN], values[DOWN][3])
    assert inspection.report.expert_bytes == num_bytes


@pytest.mark.parametrize("is_transposed", [False, True])
def test_woven_expert_is_picked_out_of_its_own_block(tmp_path: Path, is_transposed: bool) -> None:
    values = tensor_values("granitemoe")
    inspection = inspect_folder(str(write_family(tmp_path / "m", "granitemoe", values)))
    rows, columns = values[FUSED].shape[1:]
    shape = (columns, rows) if is_transposed else (rows, columns)
    block = values[FUSED][3].reshape(shape)
    block = block.T if is_transposed else block
    parts = dict(inspection.experts[EXPERT])
    gate = parts[ExpertPart.GATE]
    for first_row, part in enumerate((ExpertPart.GATE, ExpertPart.UP)):
        parts[part] = dataclasses.replace(
            gate, num_bytes=2 * gate.num_bytes, weave=Weave(*shape, first_row, 2, is_transposed)
        )
    woven = dataclasses.replace(inspection, experts={EXPERT: parts})
    found, num_bytes = read(woven)

    np.testing.assert_array_equal(found[ExpertPart.GATE], block[0::2])
    np.testing.assert_array_equal(found[ExpertPart.UP], block[1::2])
    np.testing.assert_array_equal(found[ExpertPart.DOWN], values[DOWN][3])
    assert num_bytes == inspection.report.expert_bytes


def test_stacked_tensor_that_is_missing_is_named_once(tmp_path: Path) -> None:
    values = tensor_values("granitemoe")
    del values[FUSED]
    report = inspect_folder(str(write_family(tmp_path / "m", "granitemoe", values))).report
    (problem,) = report.problems
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters["tensor"] == FUSED
    assert problem.parameters["num_missing"] == 1


def test_stacked_tensor_of_another_shape_is_named_once(tmp_path: Path) -> None:
    values = tensor_values("granitemoe")
    values[FUSED] = values[FUSED][:4]
    report = inspect_folder(str(write_family(tmp_path / "m", "granitemoe", values))).report
    (problem,) = report.problems
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == FUSED
    assert problem.parameters["found"] == "4 x 384 x 256"
    assert problem.parameters["expected"] == "5 x 384 x 256"
    assert problem.detail == FUSED


def test_dense_model_has_no_experts_and_is_runnable(tmp_path: Path) -> None:
    values = tensor_values("llama")
    inspection = inspect_folder(str(write_family(tmp_path / "m", "llama", values)))
    report = inspection.report
    assert report.is_runnable
    assert not inspection.experts
    assert report.num_parameters == report.num_active_parameters
    assert report.num_parameters == sum(array.size for array in values.values())
    assert report.stored_format == "bf16"
    assert report.expert_bytes == 0
