"""Q6_K as a format of kernels: every value of a file's blocks, and what packing keeps."""

import gguf
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from runtime.kernels.formats import pack, unpack
from runtime.kernels.quads import Floats
from runtime.kernels.tensor_formats import unpack_tensor
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import SPAN_ROW_BYTES, matrix_bytes
from runtime.store.records import six_span_record

Q6K = WeightFormat.Q6K_G16


def restored(array: Floats) -> Floats:
    return unpack(Q6K, pack(Q6K, array), *array.shape)


@pytest.mark.parametrize(("rows", "spans"), [(1, 1), (8, 3), (13, 2)])
def test_unpack_blocks_of_a_file_gives_the_very_values_of_the_library(
    rows: int, spans: int
) -> None:
    random = np.random.default_rng(rows)
    stored = random.integers(0, 256, (rows, spans, SPAN_ROW_BYTES[Q6K]), dtype=np.uint8)
    units = random.uniform(-0.5, 0.5, (rows, spans, 1)).astype(np.float16)
    stored[..., 208:] = units.view(np.uint8).reshape(rows, spans, 2)
    expected = gguf.dequantize(stored.reshape(rows, -1), gguf.GGMLQuantizationType.Q6_K)
    record = six_span_record(stored).reshape(-1)
    found = unpack(Q6K, record, rows, spans * 256)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
    there = unpack_tensor(Q6K, torch.from_numpy(record), rows, spans * 256).numpy()
    np.testing.assert_array_equal(there.view(np.uint32), expected.view(np.uint32))


@given(
    array=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 10), st.integers(1, 300)),
        elements=st.floats(-100, 100, width=32),
    )
)
def test_unpack_errs_less_than_a_level_of_the_row(array: Floats) -> None:
    """The largest of a row by 31 is a level; its unit by 254 what rounding a scale moves.

    Units below the normal numbers of fp16 are off by up to 2 ** -25.
    """
    largest = np.abs(array).max(1)
    bound = largest * (0.5 / 31 + 32 / 31 / 254 + 2.0**-9) + 2.0**-12
    assert (np.abs(restored(array) - array) <= bound[:, None]).all()


def test_size_fills_columns_up_to_whole_spans() -> None:
    assert matrix_bytes(Q6K, 9, 257) == 2 * 8 * 2 * 210
    assert pack(Q6K, np.zeros((9, 257), np.float32)).size == matrix_bytes(Q6K, 9, 257)
    assert not restored(np.zeros((9, 257), np.float32)).any()
