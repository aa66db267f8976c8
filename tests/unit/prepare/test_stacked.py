"""Preparing a model whose experts are stacked gives the records of each expert alone."""

from pathlib import Path

import numpy as np
import pytest

from runtime.inspect.folder import inspect_folder
from runtime.kernels.formats import pack
from runtime.prepare.prepare import prepare_model
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertPart
from runtime.store.prepared import PreparedStore
from tests.support.family_folders import spec_of, tensor_values, write_family

BLOCK = "model.layers.1.block_sparse_moe"


@pytest.mark.parametrize("weight_format", [WeightFormat.Q8_G32, WeightFormat.Q4_G32])
def test_prepare_stacked_experts_one_by_one(tmp_path: Path, weight_format: WeightFormat) -> None:
    values = tensor_values("granitemoe")
    inspection = inspect_folder(str(write_family(tmp_path / "m", "granitemoe", values)))
    copy = prepare_model(inspection, weight_format, str(tmp_path / "copy"))

    store = PreparedStore(Path(copy.folder))
    record = np.zeros(store.layout.record_bytes, np.uint8)
    store.read_expert(ExpertId(1, 2), record.data)
    width = spec_of("granitemoe").expert_width
    fused = values[f"{BLOCK}.input_linear.weight"][2]
    published = {
        ExpertPart.GATE: fused[:width],
        ExpertPart.UP: fused[width:],
        ExpertPart.DOWN: values[f"{BLOCK}.output_linear.weight"][2],
    }
    for part, layout in store.layout.parts.items():
        found = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        expected = pack(weight_format, np.ascontiguousarray(published[part]))
        np.testing.assert_array_equal(found, expected)
    store.close()
