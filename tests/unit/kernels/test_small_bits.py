"""The formats of six, three and two bits: what they keep, and where it lies."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from runtime.kernels.formats import pack, unpack
from runtime.kernels.quads import Floats
from runtime.protocol.values import WeightFormat

Q6, Q3, Q2 = WeightFormat.Q6_G32, WeightFormat.Q3_G16, WeightFormat.Q2_G16
FORMATS = (Q6, Q3, Q2)
HIGHEST = {Q6: 63, Q3: 7, Q2: 3}
MOST = {Q6: 255, Q3: 15, Q2: 15}
weights = st.floats(-100, 100, width=32)


def restored(weight_format: WeightFormat, array: Floats) -> Floats:
    return unpack(weight_format, pack(weight_format, array), *array.shape)


@pytest.mark.parametrize(("weight_format", "most"), [(Q6, 0.0173), (Q3, 0.131), (Q2, 0.269)])
def test_unpack_normal_weights_err_little(weight_format: WeightFormat, most: float) -> None:
    """Q6_K errs by 0.0177, Q3_K by 0.151 and Q2_K by 0.297."""
    array = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    assert np.sqrt(np.square(restored(weight_format, array) - array).mean()) < most


@pytest.mark.parametrize(("weight_format", "by_rounding"), [(Q3, 0.168), (Q2, 0.44)])
def test_unpack_errs_less_than_rounding_from_least_to_largest(
    weight_format: WeightFormat, by_rounding: float
) -> None:
    """Scale and least weight of 16 weights are searched, not taken from their ends."""
    array = np.random.default_rng(1).standard_normal((64, 1024), dtype=np.float32)
    groups = array.reshape(-1, 16)
    least, largest = groups.min(1, keepdims=True), groups.max(1, keepdims=True)
    step = (largest - least) / HIGHEST[weight_format]
    rounded = (np.rint((groups - least) / step) * step + least).reshape(array.shape)
    plain = float(np.sqrt(np.square(rounded - array).mean()))
    found = float(np.sqrt(np.square(restored(weight_format, array) - array).mean()))
    # Even with scales and leasts in four bits, which the rounding here does not have.
    assert found < plain < by_rounding


@pytest.mark.parametrize("weight_format", FORMATS)
@given(array=hnp.arrays(np.float32, (8, 96), elements=weights))
def test_unpack_errs_less_than_a_level_of_the_row(
    weight_format: WeightFormat, array: Floats
) -> None:
    """The widest span of a row by the levels, and what rounding scale and least to units moves."""
    highest, most = HIGHEST[weight_format], MOST[weight_format]
    span = np.maximum(array.max(1), 0) - np.minimum(array.min(1), 0)
    bound = span * (1 / highest + (highest + 1) / highest / most + 2.0**-9) + 2.0**-15
    assert (np.abs(restored(weight_format, array) - array) <= bound[:, None]).all()


@pytest.mark.parametrize("weight_format", FORMATS)
@pytest.mark.parametrize("value", [-3.0, 0.0, 0.125])
def test_unpack_equal_weights_are_kept(weight_format: WeightFormat, value: float) -> None:
    array = np.full((9, 70), value, np.float32)
    # Half a unit of the largest scale, and what rounding the unit moves.
    rtol = 0.5 / MOST[weight_format] + 2.0**-9
    assert np.allclose(restored(weight_format, array), array, rtol=rtol, atol=0)


@pytest.mark.parametrize("weight_format", FORMATS)
@given(
    exponent=st.integers(-140, 120),
    array=hnp.arrays(np.float32, (8, 64), elements=st.floats(-1, 1, width=32)),
)
def test_pack_weights_of_any_size_stay_finite(
    weight_format: WeightFormat, exponent: int, array: Floats
) -> None:
    assert np.isfinite(restored(weight_format, np.ldexp(array, exponent))).all()


@pytest.mark.parametrize("weight_format", FORMATS)
@given(array=hnp.arrays(np.float32, (40, 96), elements=weights))
def test_pack_bytes_do_not_depend_on_how_rows_are_cut(
    weight_format: WeightFormat, array: Floats
) -> None:
    parts = [pack(weight_format, array[:8]), pack(weight_format, array[8:])]
    assert (pack(weight_format, array) == np.concatenate(parts)).all()


@pytest.mark.parametrize("weight_format", FORMATS)
def test_pack_weight_not_finite_is_refused(weight_format: WeightFormat) -> None:
    with pytest.raises(ValueError, match="not finite"):
        pack(weight_format, np.array([[1.0, np.inf]], np.float32))


def test_pack_six_bits_lie_in_memory_as_documented() -> None:
    array = np.zeros((8, 32), np.float32)
    array[0] = 255 * np.arange(63, 31, -1)  # a unit of 1, a scale of 255: levels 63 to 32
    array[0, 31] = 0.0
    data = pack(Q6, array)
    assert data.size == 32 + 208
    assert data[:16].view(np.float16).tolist() == [1.0] + [0.0] * 7
    assert data[32:40].tolist() == [255] + [0] * 7
    vectors = data[48:].reshape(6, 8, 4)
    levels = [63 - column for column in range(31)] + [0]
    assert [int(vectors[q, 0, c]) & 15 for q in range(4) for c in range(4)] == [
        level & 15 for level in levels[:16]
    ]
    assert [int(vectors[q, 0, c]) >> 4 for q in range(4) for c in range(4)] == [
        level & 15 for level in levels[16:]
    ]
    upper = [
        int(vectors[4 + v, 0, c]) >> 2 * k & 3 for v in (0, 1) for k in range(4) for c in range(4)
    ]
    assert upper == [level >> 4 for level in levels]


@pytest.mark.parametrize("weight_format", [Q3, Q2])
def test_pack_small_bits_lie_in_memory_as_documented(weight_format: WeightFormat) -> None:
    highest = HIGHEST[weight_format]
    array = np.zeros((8, 32), np.float32)
    levels = np.arange(32) % (highest + 1)
    array[2, :16] = 15.0 * levels[:16]  # a unit of 1, a scale of 15
    array[2, 16:] = 7.0 * levels[16:]  # a scale of 7
    array[5, 16:] = -15.0  # a least weight of 15 units of 1
    data = pack(weight_format, array)
    assert data.size == 32 + (112 if weight_format is Q3 else 80)
    units = data[:32].view(np.float16).reshape(2, 8)
    assert units[0].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert units[1, 2] < 1e-6  # what fitting a line leaves
    assert np.delete(units[1], 2).tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert data[32:40].tolist() == [0, 0, 15 | 7 << 4, 0, 0, 0, 0, 0]
    assert np.delete(data[40:48], 2).tolist() == [0, 0, 0, 0, 15 << 4, 0, 0]
    vectors = data[48:].reshape(-1, 8, 4)
    found = []
    for column in range(32):
        quad, place = divmod(column, 4)
        level = int(vectors[quad // 4, 2, place]) >> 2 * (quad % 4) & 3
        if weight_format is Q3:
            level |= (int(vectors[2, 2, place]) >> quad & 1) << 2
        found.append(level)
    assert found == levels.tolist()
    assert np.allclose(restored(weight_format, array), array, atol=1e-4)
