"""Q2_K, Q3_K and Q6_K as formats of kernels: every value of blocks, and what packing keeps."""

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given

from runtime.kernels.formats import pack, unpack
from runtime.kernels.quads import Floats
from runtime.kernels.tensor_formats import unpack_tensor
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import SPAN_ROW_BYTES, matrix_bytes
from runtime.store.records import SPAN_RECORDS
from tests.support.small_matrices import SMALL_MATRICES

Q6K, Q3K, Q2K = WeightFormat.Q6K_G16, WeightFormat.Q3K_G16, WeightFormat.Q2K_G16
KINDS = {
    Q6K: gguf.GGMLQuantizationType.Q6_K,
    Q3K: gguf.GGMLQuantizationType.Q3_K,
    Q2K: gguf.GGMLQuantizationType.Q2_K,
}
UNITS_AT = {Q6K: (208,), Q3K: (108,), Q2K: (80, 82)}


def restored(array: Floats, weight_format: WeightFormat) -> Floats:
    return unpack(weight_format, pack(weight_format, array), *array.shape)


@pytest.mark.parametrize("weight_format", KINDS)
@pytest.mark.parametrize(("rows", "spans"), [(1, 1), (8, 3), (13, 2)])
def test_unpack_blocks_of_a_file_gives_the_very_values_of_the_library(
    weight_format: WeightFormat, rows: int, spans: int
) -> None:
    random, kind = np.random.default_rng(rows), KINDS[weight_format]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    stored = random.integers(0, 256, (rows, spans, size), dtype=np.uint8)
    for at in UNITS_AT[weight_format]:
        units = random.uniform(-0.5, 0.5, (rows, spans, 1)).astype(np.float16)
        stored[..., at : at + 2] = units.view(np.uint8).reshape(rows, spans, 2)
    expected = gguf.dequantize(stored.reshape(rows, -1), kind)
    record = SPAN_RECORDS[weight_format](stored).reshape(-1)
    found = unpack(weight_format, record, rows, spans * 256)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
    there = unpack_tensor(weight_format, torch.from_numpy(record), rows, spans * 256).numpy()
    np.testing.assert_array_equal(there.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("weight_format", [Q6K, Q3K])
@given(array=SMALL_MATRICES)
def test_unpack_with_signs_errs_less_than_a_level_of_the_row(
    weight_format: WeightFormat, array: Floats
) -> None:
    """The largest of a row by the levels on one side is one; its unit moves a scale by half.

    Units below the normal numbers of fp16 are off by up to 2 ** -25.
    """
    highest, most = (31, 127) if weight_format is Q6K else (3, 31)
    largest = np.abs(array).max(1)
    bound = largest * (0.5 / highest + (highest + 1) / highest / most / 2 + 2.0**-9) + 2.0**-12
    assert (np.abs(restored(array, weight_format) - array) <= bound[:, None]).all()


@given(array=SMALL_MATRICES)
def test_unpack_with_leasts_errs_less_than_a_level_of_the_row(array: Floats) -> None:
    """The span of a row by three is a level; a unit by 30 what rounding scale and least moves."""
    span = np.maximum(array.max(1), 0) - np.minimum(array.min(1), 0)
    bound = span * (1 / 3 + 4 / 30 + 2.0**-9) + 2.0**-12
    assert (np.abs(restored(array, Q2K) - array) <= bound[:, None]).all()


def test_unpack_normal_weights_err_less_with_every_bit() -> None:
    array = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    two, three, six = (
        float(np.square(restored(array, each) - array).mean()) for each in (Q2K, Q3K, Q6K)
    )
    assert six < 0.001 < three < 0.05 < two < 0.15


@pytest.mark.parametrize("weight_format", KINDS)
def test_size_fills_columns_up_to_whole_spans(weight_format: WeightFormat) -> None:
    row_bytes = {Q6K: 210, Q3K: 110 + 4, Q2K: 84}[weight_format]
    assert row_bytes == SPAN_ROW_BYTES[weight_format]
    assert matrix_bytes(weight_format, 9, 257) == 2 * 8 * 2 * row_bytes
    packed = pack(weight_format, np.zeros((9, 257), np.float32))
    assert packed.size == matrix_bytes(weight_format, 9, 257)
    assert not restored(np.zeros((9, 257), np.float32), weight_format).any()
