"""Experts published in MXFP4 are read as records, weight for weight."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import ExpertId, ExpertPart, MatrixLayout
from runtime.store.checkpoint import CheckpointStore
from tests.support.checkpoint_folders import write_json, write_safetensors
from tests.support.packed_folders import LEVELS, packed_tensors, weights_of, write_packed

PREFIX = "model.layers.1.mlp.experts"
EXPERT = ExpertId(1, 2)


def read(inspection: Inspection) -> tuple[dict[ExpertPart, np.ndarray], int]:
    """The matrices of the expert as numbers, and the bytes that were read for it."""
    with contextlib.closing(CheckpointStore(inspection, prefers_direct=False)) as store:
        record = np.zeros(store.layout.record_bytes, np.uint8)
        store.read_expert(EXPERT, record.data)
        found = {part: matrix_of(record, store.layout[part]) for part in ExpertPart}
        return found, store.num_bytes_read


def matrix_of(record: np.ndarray, layout: MatrixLayout) -> np.ndarray:
    """What a matrix in a record stands for, number by number as docs/formats.md draws it."""
    data = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
    groups = data.reshape(-1, layout.columns // 32, 136)
    matrix = np.zeros((layout.rows, layout.columns), np.float32)
    for row, column in np.ndindex(matrix.shape):
        group = groups[row // 8, column // 32]
        quad, place = divmod(column % 16, 4)
        byte = int(group[8 + 32 * quad + 4 * (row % 8) + place])
        half = byte >> 4 if column % 32 >= 16 else byte & 15
        level = (-1.0 if half & 8 else 1.0) * LEVELS[half & 7]
        matrix[row, column] = level * 2.0 ** (int(group[row % 8]) - 127)
    return matrix


def test_packed_expert_is_read_alone_and_keeps_every_weight(tmp_path: Path) -> None:
    inspection = inspect_folder(str(write_packed(tmp_path / "m")))
    found, num_bytes = read(inspection)

    tensors = packed_tensors()
    both = weights_of(tensors, f"{PREFIX}.gate_up_proj")[2]
    np.testing.assert_array_equal(found[ExpertPart.GATE], both[0::2])
    np.testing.assert_array_equal(found[ExpertPart.UP], both[1::2])
    down = weights_of(tensors, f"{PREFIX}.down_proj")[2]
    np.testing.assert_array_equal(found[ExpertPart.DOWN], down)
    assert num_bytes == inspection.report.expert_bytes


@pytest.mark.parametrize("scale", [253, 255])
def test_packed_scale_that_is_no_number_is_refused_with_its_tensor(
    tmp_path: Path, scale: int
) -> None:
    folder = write_packed(tmp_path / "m")
    tensors = packed_tensors()
    name = f"{PREFIX}.down_proj_scales"
    dtype, shape, data = tensors[name]
    damaged = bytearray(data)
    damaged[len(data) // 2 + 7] = scale
    tensors[name] = (dtype, shape, bytes(damaged))
    write_safetensors(folder / "model.safetensors", tensors)

    with pytest.raises(LarderError) as refused:
        read(inspect_folder(str(folder)))
    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    place = str(refused.value.parameters["place"])
    assert place == f"The matrix {name} in {folder / 'model.safetensors'}"
    assert str(scale) in refused.value.detail


def test_packed_expert_whose_scales_lie_in_another_file_is_read(tmp_path: Path) -> None:
    folder = write_packed(tmp_path / "m", is_indexed=True)
    whole, _ = read(inspect_folder(str(folder)))
    tensors = packed_tensors()
    scales = {name: tensors.pop(name) for name in list(tensors) if name.endswith("_scales")}
    write_safetensors(folder / "model.safetensors", tensors)
    write_safetensors(folder / "scales.safetensors", scales)
    weight_map = dict.fromkeys(tensors, "model.safetensors") | dict.fromkeys(
        scales, "scales.safetensors"
    )
    write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map})
    found, _ = read(inspect_folder(str(folder)))
    for part in ExpertPart:
        np.testing.assert_array_equal(found[part], whole[part])
