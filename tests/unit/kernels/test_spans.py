"""Q4_K as a format of kernels: every value of a file's blocks, and what packing keeps."""

import gguf
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from runtime.kernels.formats import pack, unpack
from runtime.kernels.quads import Floats
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import SPAN_ROW_BYTES as ROW_BYTES_BY_FORMAT
from runtime.spec.tensors import matrix_bytes
from runtime.store.records import span_record

Q4K, Q4A = WeightFormat.Q4K_G32, WeightFormat.Q4A_G32
SPAN_ROW_BYTES = ROW_BYTES_BY_FORMAT[Q4K]


def restored(array: Floats) -> Floats:
    return unpack(Q4K, pack(Q4K, array), *array.shape)


@pytest.mark.parametrize(("rows", "spans"), [(1, 1), (8, 3), (13, 2)])
def test_unpack_blocks_of_a_file_gives_the_very_values_of_the_library(
    rows: int, spans: int
) -> None:
    random = np.random.default_rng(rows)
    stored = random.integers(0, 256, (rows, spans, SPAN_ROW_BYTES), dtype=np.uint8)
    units = random.uniform(-0.5, 0.5, (rows, spans, 2)).astype(np.float16)
    stored[..., :4] = units.view(np.uint8).reshape(rows, spans, 4)
    expected = gguf.dequantize(stored.reshape(rows, -1), gguf.GGMLQuantizationType.Q4_K)
    found = unpack(Q4K, span_record(stored).reshape(-1), rows, spans * 256)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_pack_is_undone_by_the_drawing_of_the_library() -> None:
    """What is packed is a block of Q4_K, row by row."""
    array = np.random.default_rng(0).standard_normal((8, 512), dtype=np.float32)
    spans = pack(Q4K, array).reshape(2, 8 * SPAN_ROW_BYTES)
    units = spans[:, :32].reshape(2, 2, 8, 2).transpose(2, 0, 1, 3).reshape(8, 2, 4)
    scales = spans[:, 32:128].reshape(2, 12, 8).transpose(2, 0, 1)
    levels = spans[:, 128:].reshape(2, 32, 8, 4).transpose(2, 0, 1, 3).reshape(8, 2, 128)
    blocks = np.concatenate([units, scales, levels], axis=2).reshape(8, -1)
    expected = gguf.dequantize(blocks, gguf.GGMLQuantizationType.Q4_K)
    np.testing.assert_array_equal(restored(array), expected)


def test_unpack_normal_weights_err_little_more_than_with_units_of_rows() -> None:
    array = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    of_rows = unpack(Q4A, pack(Q4A, array), *array.shape)
    assert np.square(restored(array) - array).sum() < 1.1 * np.square(of_rows - array).sum()


@given(
    array=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 10), st.integers(1, 300)),
        elements=st.floats(-100, 100, width=32),
    )
)
def test_unpack_errs_less_than_a_level_of_the_row(array: Floats) -> None:
    """The widest span of a row by 15 is a level; its unit by 126 what rounding a scale moves."""
    span = np.maximum(array.max(1), 0) - np.minimum(array.min(1), 0)
    bound = span * (1 / 15 + 16 / 126 + 2.0**-9) + 2.0**-15
    assert (np.abs(restored(array) - array) <= bound[:, None]).all()


def test_size_fills_columns_up_to_whole_spans() -> None:
    assert matrix_bytes(Q4K, 9, 257) == 2 * 8 * 2 * 144
    assert pack(Q4K, np.zeros((9, 257), np.float32)).size == matrix_bytes(Q4K, 9, 257)
    assert not restored(np.zeros((9, 257), np.float32)).any()
