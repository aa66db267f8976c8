"""Q4_K and Q5_K as formats of kernels: every value of a file's blocks, and what packing keeps."""

import gguf
import numpy as np
import pytest
from hypothesis import given

from runtime.kernels.formats import pack, unpack
from runtime.kernels.quads import Floats
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import SPAN_ROW_BYTES, STORED_BITS, matrix_bytes
from runtime.store.records import SPAN_RECORDS
from tests.support.small_matrices import SMALL_MATRICES

Q4K, Q5K, Q4A, Q6 = (
    WeightFormat.Q4K_G32,
    WeightFormat.Q5K_G32,
    WeightFormat.Q4A_G32,
    WeightFormat.Q6_G32,
)
KINDS = {Q4K: gguf.GGMLQuantizationType.Q4_K, Q5K: gguf.GGMLQuantizationType.Q5_K}


def restored(array: Floats, weight_format: WeightFormat = Q4K) -> Floats:
    return unpack(weight_format, pack(weight_format, array), *array.shape)


@pytest.mark.parametrize("weight_format", KINDS)
@pytest.mark.parametrize(("rows", "spans"), [(1, 1), (8, 3), (13, 2)])
def test_unpack_blocks_of_a_file_gives_the_very_values_of_the_library(
    weight_format: WeightFormat, rows: int, spans: int
) -> None:
    random = np.random.default_rng(rows)
    row_bytes = SPAN_ROW_BYTES[weight_format]
    stored = random.integers(0, 256, (rows, spans, row_bytes), dtype=np.uint8)
    units = random.uniform(-0.5, 0.5, (rows, spans, 2)).astype(np.float16)
    stored[..., :4] = units.view(np.uint8).reshape(rows, spans, 4)
    expected = gguf.dequantize(stored.reshape(rows, -1), KINDS[weight_format])
    record = SPAN_RECORDS[weight_format](stored).reshape(-1)
    found = unpack(weight_format, record, rows, spans * 256)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("weight_format", KINDS)
def test_pack_is_undone_by_the_drawing_of_the_library(weight_format: WeightFormat) -> None:
    """What is packed is a block of Q4_K or Q5_K, row by row."""
    array = np.random.default_rng(0).standard_normal((8, 512), dtype=np.float32)
    spans = pack(weight_format, array).reshape(2, -1)
    units = spans[:, :32].reshape(2, 2, 8, 2).transpose(2, 0, 1, 3).reshape(8, 2, 4)
    scales = spans[:, 32:128].reshape(2, 12, 8).transpose(2, 0, 1)
    vectors = spans[:, 128:].reshape(2, -1, 8, 4)
    if weight_format is Q5K:
        fives = vectors.reshape(2, 8, 5, 8, 4).swapaxes(1, 2)
        vectors = np.concatenate([fives[:, 4:], fives[:, :4]], axis=1).reshape(2, -1, 8, 4)
    levels = vectors.transpose(2, 0, 1, 3).reshape(8, 2, -1)
    blocks = np.concatenate([units, scales, levels], axis=2).reshape(8, -1)
    expected = gguf.dequantize(blocks, KINDS[weight_format])
    np.testing.assert_array_equal(restored(array, weight_format), expected)


def test_unpack_normal_weights_err_little_more_than_with_units_of_rows() -> None:
    array = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    of_rows = unpack(Q4A, pack(Q4A, array), *array.shape)
    assert np.square(restored(array) - array).sum() < 1.1 * np.square(of_rows - array).sum()


def test_unpack_five_bits_err_half_as_much_as_four_and_more_than_six() -> None:
    array = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    four, five, six = (
        float(np.square(restored(array, each) - array).sum()) for each in (Q4K, Q5K, Q6)
    )
    assert 1.5 * six < five < four / 3


@pytest.mark.parametrize("weight_format", KINDS)
@given(array=SMALL_MATRICES)
def test_unpack_errs_less_than_a_level_of_the_row(
    weight_format: WeightFormat, array: Floats
) -> None:
    """A row's widest span by its levels is one; its unit by 126 what rounding a scale moves."""
    span = np.maximum(array.max(1), 0) - np.minimum(array.min(1), 0)
    highest = (1 << STORED_BITS[weight_format]) - 1
    bound = span * (1 / highest + (highest + 1) / 126 + 2.0**-9) + (highest + 1) * 2.0**-19
    assert (np.abs(restored(array, weight_format) - array) <= bound[:, None]).all()


def test_size_fills_columns_up_to_whole_spans() -> None:
    for weight_format, row_bytes in ((Q4K, 144), (Q5K, 176)):
        assert matrix_bytes(weight_format, 9, 257) == 2 * 8 * 2 * row_bytes
        packed = pack(weight_format, np.zeros((9, 257), np.float32))
        assert packed.size == matrix_bytes(weight_format, 9, 257)
        assert not restored(np.zeros((9, 257), np.float32), weight_format).any()
