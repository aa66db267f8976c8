"""The affine format of four bits: what it keeps, and where it lies."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from runtime.kernels.formats import pack, unpack
from runtime.kernels.quads import Floats
from runtime.protocol.values import WeightFormat

Q4A = WeightFormat.Q4A_G32
weights = st.floats(-100, 100, width=32)


def restored(array: Floats) -> Floats:
    return unpack(Q4A, pack(Q4A, array), *array.shape)


def test_unpack_normal_weights_err_less_than_seven_hundredths() -> None:
    array = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    assert np.sqrt(np.square(restored(array) - array).mean()) < 0.0706


def test_unpack_lopsided_weights_err_less_than_with_a_scale_alone() -> None:
    random = np.random.default_rng(0)
    array = random.standard_normal((64, 1024), dtype=np.float32)
    array += random.standard_normal((64, 1), dtype=np.float32)
    alone = unpack(WeightFormat.Q4_G32, pack(WeightFormat.Q4_G32, array), *array.shape)
    assert np.square(restored(array) - array).sum() < 0.75 * np.square(alone - array).sum()


@given(array=hnp.arrays(np.float32, (8, 96), elements=weights))
def test_unpack_errs_less_than_a_level_of_the_row(array: Floats) -> None:
    """The widest span of a row by 15 is a level; its unit by 510 what rounding a scale moves."""
    span = np.maximum(array.max(1), 0) - np.minimum(array.min(1), 0)
    bound = span * (1 / 15 + 16 / 510 + 2.0**-9) + 2.0**-15
    assert (np.abs(restored(array) - array) <= bound[:, None]).all()


@pytest.mark.parametrize("span", [2.0**-14, 1e-4, 1e-3, 1e-2])
def test_unpack_small_weights_err_like_large_ones(span: float) -> None:
    """A unit of fp16 is coarse for such rows, and one rounded down would cut weights off."""
    array = np.random.default_rng(0).uniform(0, span, (64, 128)).astype(np.float32)
    assert np.abs(restored(array) - array).max() < span / 15


@pytest.mark.parametrize("value", [-3.0, 0.0, 0.125])
def test_unpack_equal_weights_are_kept(value: float) -> None:
    array = np.full((9, 70), value, np.float32)
    assert np.allclose(restored(array), array, rtol=2.0**-9, atol=0)


@given(
    exponent=st.integers(-140, 120),
    array=hnp.arrays(np.float32, (8, 64), elements=st.floats(-1, 1, width=32)),
)
def test_pack_weights_of_any_size_stay_finite(exponent: int, array: Floats) -> None:
    assert np.isfinite(restored(np.ldexp(array, exponent))).all()


@given(array=hnp.arrays(np.float32, (40, 96), elements=weights))
def test_pack_bytes_do_not_depend_on_how_rows_are_cut(array: Floats) -> None:
    parts = [pack(Q4A, array[:8]), pack(Q4A, array[8:])]
    assert (pack(Q4A, array) == np.concatenate(parts)).all()


def test_pack_lies_in_memory_as_documented() -> None:
    array = np.zeros((8, 32), np.float32)
    array[0, :16] = 255 * np.arange(16)[::-1]  # every level once: a unit of 1, a scale of 255
    array[1, 22] = -255.0  # a least weight of 255 units of 1
    data = pack(Q4A, array)
    assert data.size == 32 + 144
    units = data[:32].view(np.float16).reshape(2, 8)
    assert units[0, 0] == 1.0
    assert units[1].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    scales, leasts, pairs = data[32:40], data[40:48], data[48:].reshape(4, 8, 4)
    assert scales[0] == 255
    assert leasts.tolist() == [0, 255, 0, 0, 0, 0, 0, 0]
    assert pairs[:, 0].reshape(-1).tolist() == list(range(15, -1, -1))  # low nibbles; high: 0
    assert pairs[1, 1, 2] >> 4 == 0  # column 22 = 16 + 4 * 1 + 2, the high nibble: level 0
    assert unpack(Q4A, data, 8, 32)[1, 22] == -255.0
