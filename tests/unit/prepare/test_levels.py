"""Preparing a model by GPTQ or AWQ: as published, or in fewer bits from the exact weights."""

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
from tests.support.level_folders import (
    AWQ,
    GPTQ,
    STATED,
    Published,
    published_matrices,
    write_levels,
)

QUERIES = "model.layers.0.self_attn.q_proj.weight"
Q8, Q4, Q4A = WeightFormat.Q8_G32, WeightFormat.Q4_G32, WeightFormat.Q4A_G32


def matrix_of(matrices: dict[str, Published], part: str) -> np.ndarray:
    return matrices[f"model.layers.1.mlp.experts.2.{part}_proj.weight"].values()


@pytest.mark.parametrize(
    ("kind", "weight_format"),
    [("gptq", Q4), ("gptq-eight", Q8), ("gptq-zeros", Q8), ("awq", Q8), ("awq", Q4A)],
)
def test_prepared_copy_holds_what_was_published(
    tmp_path: Path, kind: str, weight_format: WeightFormat
) -> None:
    matrices = published_matrices(STATED[kind])
    inspection = inspect_folder(str(write_levels(tmp_path / "m", STATED[kind], matrices)))
    copy = prepare_model(inspection, weight_format, str(tmp_path / "copy"))
    store = PreparedStore(Path(copy.folder))
    record = np.zeros(store.layout.record_bytes, np.uint8)
    store.read_expert(ExpertId(1, 2), record.data)
    for part, layout in store.layout.parts.items():
        found = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        published = matrix_of(matrices, part)
        if weight_format is Q4A:
            np.testing.assert_array_equal(found, pack(Q4A, published))
        else:
            weights = unpack(weight_format, found, layout.rows, layout.columns)
            np.testing.assert_array_equal(weights, published)
    entry = store.dense_tensors[QUERIES]
    data = np.zeros(entry.num_bytes, np.uint8)
    store.read_tensor(entry, data.data)
    store.close()
    assert entry.format is WeightFormat.F32
    np.testing.assert_array_equal(
        data.view(np.float32).reshape(entry.shape), matrices[QUERIES].values()
    )


@pytest.mark.parametrize("weight_format", [Q8, Q4A])
def test_model_of_which_a_layer_was_left_alone_is_prepared_from_exact_weights(
    tmp_path: Path, weight_format: WeightFormat
) -> None:
    matrices = published_matrices(AWQ)
    kept = {name: own for name, own in matrices.items() if ".layers.0." not in name}
    inspection = inspect_folder(str(write_levels(tmp_path / "m", AWQ, kept)))
    copy = prepare_model(inspection, weight_format, str(tmp_path / "copy"))
    store = PreparedStore(Path(copy.folder))
    record = np.zeros(store.layout.record_bytes, np.uint8)
    store.read_expert(ExpertId(1, 2), record.data)
    for part, layout in store.layout.parts.items():
        found = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        np.testing.assert_array_equal(found, pack(weight_format, matrix_of(matrices, part)))
    store.close()


@pytest.mark.parametrize(("stated", "asked"), [(GPTQ, Q8), (GPTQ, Q4A), (AWQ, Q4)])
def test_copy_that_would_gain_nothing_is_refused(
    tmp_path: Path, stated: dict[str, object], asked: WeightFormat
) -> None:
    folder = write_levels(tmp_path / "m", stated, published_matrices(stated))
    with pytest.raises(LarderError) as refused:
        prepare_model(inspect_folder(str(folder)), asked, str(tmp_path / "copy"))
    assert refused.value.code is ErrorCode.SETTING_INVALID
    assert refused.value.parameters["found"] == asked


def test_scale_that_is_no_number_is_named_by_preparing(tmp_path: Path) -> None:
    matrices = published_matrices(AWQ)
    name = "model.layers.1.mlp.experts.2.down_proj"
    matrices[f"{name}.weight"].scales[3, 0] = np.nan
    folder = write_levels(tmp_path / "m", AWQ, matrices)
    with pytest.raises(LarderError) as refused:
        prepare_model(inspect_folder(str(folder)), Q8, str(tmp_path / "copy"))
    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert f"{name}.scales" in str(refused.value.parameters["place"])
