"""Preparing a model that is published in eight bits: from f32 to the target, rounded once."""

from pathlib import Path

import numpy as np
import pytest

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.kernels.formats import pack, unpack
from runtime.prepare.prepare import prepare_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId
from runtime.store.prepared import PreparedStore
from tests.support.scaled_folders import (
    SMALL_BLOCKS,
    Scaled,
    packed,
    scaled_matrices,
    write_scaled,
)

BLOCK = (16, 24)
QUERIES = "model.layers.0.self_attn.q_proj.weight"
DOWN = "model.layers.1.mlp.experts.2.down_proj.weight"


@pytest.mark.parametrize(
    "weight_format", [WeightFormat.Q8_G32, WeightFormat.Q4_G32, WeightFormat.BF16]
)
def test_prepare_scaled_experts_and_dense_part(tmp_path: Path, weight_format: WeightFormat) -> None:
    matrices = scaled_matrices(BLOCK)
    inspection = inspect_folder(str(write_scaled(tmp_path / "m", SMALL_BLOCKS, matrices)))
    copy = prepare_model(inspection, weight_format, str(tmp_path / "copy"))

    store = PreparedStore(Path(copy.folder))
    record = np.zeros(store.layout.record_bytes, np.uint8)
    store.read_expert(ExpertId(1, 2), record.data)
    for part, layout in store.layout.parts.items():
        published = matrices[f"model.layers.1.mlp.experts.2.{part}_proj.weight"].values()
        found = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        np.testing.assert_array_equal(found, pack(weight_format, published))
    entry = store.dense_tensors[QUERIES]
    data = np.zeros(entry.num_bytes, np.uint8)
    store.read_tensor(entry, data.data)
    np.testing.assert_array_equal(data, pack(WeightFormat.BF16, matrices[QUERIES].values()))
    store.close()


def test_prepare_with_a_scale_of_zero_names_its_tensor(tmp_path: Path) -> None:
    matrices = scaled_matrices(BLOCK)
    matrices[DOWN].scales[0, 0] = 0
    inspection = inspect_folder(str(write_scaled(tmp_path / "m", SMALL_BLOCKS, matrices)))
    with pytest.raises(LarderError) as refused:
        prepare_model(inspection, WeightFormat.Q8_G32, str(tmp_path / "copy"))
    assert refused.value.code is ErrorCode.TENSOR_MISMATCHED
    assert refused.value.parameters["tensor"] == f"{DOWN}_scale_inv"


@pytest.mark.parametrize("largest", [-8, -7, 7])
def test_prepare_in_four_bits_keeps_published_four_bits(tmp_path: Path, largest: int) -> None:
    generator = np.random.default_rng(1)
    matrices = {}
    for name, own in scaled_matrices((1, 32), bits=4).items():
        codes = generator.integers(1, 16, own.codes.shape, np.uint8)
        codes[:, ::32] = largest + 8
        scales = (own.scales.view(np.uint32) >> 16 << 16).view(np.float32)
        matrices[name] = Scaled(codes, scales, own.block, 4)
    scheme = packed("group", group_size=32)
    folder = write_scaled(tmp_path / "m", scheme, matrices, ending="_scale", scale_dtype="BF16")
    inspection = inspect_folder(str(folder))
    copy = prepare_model(inspection, WeightFormat.Q4_G32, str(tmp_path / "copy"))

    store = PreparedStore(Path(copy.folder))
    record = np.zeros(store.layout.record_bytes, np.uint8)
    store.read_expert(ExpertId(1, 2), record.data)
    for part, layout in store.layout.parts.items():
        data = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        found = unpack(WeightFormat.Q4_G32, data, layout.rows, layout.columns)
        name = f"model.layers.1.mlp.experts.2.{part}_proj.weight"
        np.testing.assert_array_equal(found, matrices[name].values())
    store.close()
