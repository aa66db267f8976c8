"""Packing and unpacking of weight formats."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from runtime.kernels.formats import pack, pack_q4_g32, pack_q8_g32, unpack
from runtime.kernels.quads import Floats
from runtime.kernels.tensor_formats import unpack_tensor
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import matrix_bytes

shapes = st.tuples(st.integers(1, 40), st.integers(1, 80))
weights = st.floats(-100, 100, width=32)
matrices = hnp.arrays(np.float32, shapes, elements=weights)


def largest_in_group(array: Floats) -> Floats:
    """For each weight the largest magnitude among the 32 that share its scale."""
    rows, columns = array.shape
    padded = np.pad(np.abs(array), ((0, 0), (0, -columns % 32))).reshape(rows, -1, 32)
    largest: Floats = np.repeat(padded.max(-1), 32, axis=1)[:, :columns]
    return largest


@pytest.mark.parametrize("weight_format", list(WeightFormat))
@given(array=matrices)
def test_pack_any_matrix_takes_what_the_layout_says(
    weight_format: WeightFormat, array: Floats
) -> None:
    assert pack(weight_format, array).size == matrix_bytes(weight_format, *array.shape)


@given(array=matrices)
def test_unpack_q8_stays_within_half_a_level(array: Floats) -> None:
    restored = unpack(WeightFormat.Q8_G32, pack_q8_g32(array), *array.shape)
    # Half a level, and what rounding the scale to fp16 (2 ** -11, or 2 ** -25 near zero) moves.
    largest = largest_in_group(array)
    bound = largest * (0.5 / 127 + 2.0**-11) + 127 * 2.0**-25 + 1e-7
    assert (np.abs(restored - array) <= bound).all()


@given(array=matrices)
def test_unpack_q4_stays_within_a_level(array: Floats) -> None:
    restored = unpack(WeightFormat.Q4_G32, pack_q4_g32(array), *array.shape)
    error = np.square(restored - array)
    # The chosen scale is no worse in a group than the plain one, which errs by half a level.
    bound = largest_in_group(array) * (0.5 / 7 + 2.0**-10) + 8 * 2.0**-25 + 1e-6
    rows, columns = array.shape
    in_groups = np.pad(error, ((0, 0), (0, -columns % 32))).reshape(rows, -1, 32).sum(-1)
    bounds = np.pad(bound**2, ((0, 0), (0, -columns % 32))).reshape(rows, -1, 32).sum(-1)
    assert (in_groups <= bounds).all()


def test_unpack_q4_normal_weights_err_less_than_a_tenth() -> None:
    array = np.random.default_rng(0).standard_normal((64, 256), dtype=np.float32)
    restored = unpack(WeightFormat.Q4_G32, pack_q4_g32(array), 64, 256)
    assert np.sqrt(np.square(restored - array).mean()) < 0.0815


@given(
    exponent=st.integers(-140, 120),
    array=hnp.arrays(np.float32, (8, 64), elements=st.floats(-1, 1, width=32)),
)
def test_pack_q4_weights_of_any_size_stay_finite(exponent: int, array: Floats) -> None:
    scaled = np.ldexp(array, exponent)
    restored = unpack(WeightFormat.Q4_G32, pack_q4_g32(scaled), 8, 64)
    assert np.isfinite(restored).all()
    # Outside of fp16's range a scale is its end, or zero; inside, no weight errs by its group's
    # largest.
    inside = largest_in_group(scaled) < 8 * 65504
    assert (np.abs(restored - scaled) <= largest_in_group(scaled) + 2.0**-21)[inside].all()


@given(array=hnp.arrays(np.float32, (40, 96), elements=weights))
def test_pack_q4_bytes_do_not_depend_on_how_rows_are_cut(array: Floats) -> None:
    whole = pack_q4_g32(array)
    assert (whole == np.concatenate([pack_q4_g32(array[:8]), pack_q4_g32(array[8:])])).all()


def test_pack_q4_large_matrix_is_packed_in_slices_of_the_same_bytes() -> None:
    array = np.random.default_rng(3).standard_normal((256, 1056), dtype=np.float32)
    rows = [pack_q4_g32(array[start : start + 8]) for start in range(0, 256, 8)]
    assert (pack_q4_g32(array) == np.concatenate(rows)).all()


@pytest.mark.parametrize("weight_format", list(WeightFormat))
@given(array=matrices)
def test_unpack_tensor_gives_the_same_bits(weight_format: WeightFormat, array: Floats) -> None:
    data = pack(weight_format, array)
    as_tensor = unpack_tensor(weight_format, torch.from_numpy(data), *array.shape)
    assert (as_tensor.numpy() == unpack(weight_format, data, *array.shape)).all()


@pytest.mark.parametrize("weight_format", [WeightFormat.F32, WeightFormat.F16, WeightFormat.BF16])
def test_unpack_plain_format_returns_representable_weights_exactly(
    weight_format: WeightFormat,
) -> None:
    array = np.array([[0.0, 1.0, -2.5], [0.0078125, 96.0, -0.15625]], np.float32)
    assert (unpack(weight_format, pack(weight_format, array), 2, 3) == array).all()


def test_pack_bf16_rounds_ties_to_even() -> None:
    ties = np.array([[1 + 2.0**-8, 1 + 3 * 2.0**-8]], np.float32)
    restored = unpack(WeightFormat.BF16, pack(WeightFormat.BF16, ties), 1, 2)
    assert restored.tolist() == [[1.0, 1 + 2.0**-6]]


@pytest.mark.parametrize("packer", [pack_q8_g32, pack_q4_g32])
def test_pack_zeros_unpacks_to_zeros(packer: object) -> None:
    weight_format = WeightFormat.Q8_G32 if packer is pack_q8_g32 else WeightFormat.Q4_G32
    assert not unpack(weight_format, pack(weight_format, np.zeros((3, 5), np.float32)), 3, 5).any()


def test_pack_q8_lies_in_memory_as_documented() -> None:
    array = np.zeros((9, 33), np.float32)
    array[0, 0], array[1, 6], array[8, 32] = 127, -127, 254
    data = pack_q8_g32(array)
    assert data.size == 4 * 272
    assert data[:16].view(np.float16).tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    levels = data[16:272].view(np.int8).reshape(8, 8, 4)  # quad, row, column of the quad
    assert levels[0, 0, 0] == 127
    assert levels[1, 1, 2] == -127
    assert np.count_nonzero(levels) == 2
    assert data[3 * 272 : 3 * 272 + 2].view(np.float16)[0] == 2
    assert data[3 * 272 + 16] == 127


def test_pack_q4_lies_in_memory_as_documented() -> None:
    array = np.zeros((8, 32), np.float32)
    array[0, 0], array[1, 22] = -8, -8
    data = pack_q4_g32(array)
    assert data.size == 144
    assert data[:16].view(np.float16).tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    pairs = data[16:].reshape(4, 8, 4)  # quad, row, column of the quad
    assert pairs[0, 0, 0] == 0x80  # low nibble level -8, high nibble level 0
    assert pairs[1, 1, 2] == 0x08  # column 22 = 16 + 4 * 1 + 2: the high nibble
    assert (np.delete(pairs.reshape(-1), [0, 32 + 4 + 2]) == 0x88).all()


def test_pack_weight_not_finite_is_refused() -> None:
    array = np.array([[1.0, np.nan]], np.float32)
    with pytest.raises(ValueError, match="not finite"):
        pack_q8_g32(array)


def test_unpack_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match="bytes for"):
        unpack(WeightFormat.Q8_G32, np.zeros(100, np.uint8), 8, 32)
