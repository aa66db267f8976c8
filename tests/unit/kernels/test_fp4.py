"""The MXFP4 format: packed, unpacked, and taken over from a published checkpoint."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from runtime.kernels.formats import pack, unpack
from runtime.kernels.fp4 import LEVELS
from runtime.kernels.quads import Bytes
from runtime.protocol.values import WeightFormat
from runtime.store.packed import record_of_published

MXFP4 = WeightFormat.MXFP4


def published(rows: int, num_groups: int, seed: int = 0) -> tuple[Bytes, Bytes]:
    """Random bytes of a published matrix: pairs of levels, and exponents."""
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (rows, num_groups, 16), dtype=np.uint8)
    return blocks, random.integers(0, 253, (rows, num_groups), dtype=np.uint8)


def weights_of(blocks: Bytes, exponents: Bytes) -> np.ndarray:
    """What the published bytes stand for, in f64."""
    levels = np.stack([LEVELS[blocks & 15], LEVELS[blocks >> 4]], axis=-1).astype(np.float64)
    scales = np.ldexp(1.0, exponents.astype(int) - 127)
    flat = levels.reshape(*blocks.shape[:2], 32) * scales[..., None]
    return flat.reshape(len(blocks), -1)


@given(rows=st.integers(1, 20), num_groups=st.integers(1, 5), seed=st.integers(0, 99))
def test_record_of_published_stands_for_the_same_weights(
    rows: int, num_groups: int, seed: int
) -> None:
    blocks, exponents = published(rows, num_groups, seed)
    record = record_of_published(blocks, exponents)
    restored = unpack(MXFP4, record, rows, num_groups * 32)
    exact = weights_of(blocks, exponents)
    # Exponents 0 and 1 stand for 0 in a record: weights below 12 * 2 ** -127.
    assert (np.abs(restored - exact) <= 12 * 2.0**-127).all()
    assert (restored == exact.astype(np.float32))[np.repeat(exponents > 1, 32, axis=1)].all()


def test_record_of_published_exponent_that_is_no_number_is_refused() -> None:
    blocks, exponents = published(8, 2)
    exponents[3, 1] = 255
    with pytest.raises(ValueError, match="255"):
        record_of_published(blocks, exponents)


def test_pack_weights_of_the_format_keeps_them_exactly() -> None:
    blocks, exponents = published(24, 3)
    exponents = exponents // 2 + 60
    exact = weights_of(blocks, exponents).astype(np.float32)
    assert (unpack(MXFP4, pack(MXFP4, exact), 24, 96) == exact).all()


@given(
    exponent=st.integers(-120, 120),
    array=hnp.arrays(np.float32, (8, 64), elements=st.floats(-1, 1, width=32)),
)
def test_pack_weights_of_any_size_err_less_than_a_step(exponent: int, array: np.ndarray) -> None:
    scaled = np.ldexp(array, exponent)
    restored = unpack(MXFP4, pack(MXFP4, scaled), 8, 64)
    largest = np.repeat(np.abs(scaled).reshape(8, 2, 32).max(-1), 32, axis=1)
    # Between 4 and 6 lies the widest step; a third of the largest where the lower exponent wins.
    assert (np.abs(restored - scaled) <= largest / 3 + 2.0**-124).all()


def test_pack_lies_in_memory_as_documented() -> None:
    array = np.zeros((8, 32), np.float32)
    array[0, 0], array[1, 22] = 6.0, -0.75
    data = pack(MXFP4, array)
    assert data.size == 136
    assert data[:8].tolist() == [127, 124, 0, 0, 0, 0, 0, 0]
    pairs = data[8:].reshape(4, 8, 4)  # quad, row, column of the quad
    assert pairs[0, 0, 0] == 0x07  # low nibble: level 6
    assert pairs[1, 1, 2] == 0xF0  # column 22 = 16 + 4 * 1 + 2, the high nibble: level -6
    assert np.count_nonzero(pairs) == 2
