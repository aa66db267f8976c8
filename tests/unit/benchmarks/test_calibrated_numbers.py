"""Numbers in few bits mean the same in every format that a calibrated model is written in."""

import gguf
import numpy as np
import pytest

from benchmarks.calibrated.numbers import (
    GROUP,
    as_bf16,
    cut_to_bf16,
    few_bits,
    nearest_levels,
    random_fours,
    random_levels,
)
from runtime.kernels.formats import pack, unpack
from runtime.protocol.values import WeightFormat
from tests.support.packed_folders import LEVELS

TYPES = gguf.GGMLQuantizationType
SHAPE = (16, 96)


def random() -> np.random.Generator:
    return np.random.default_rng(1)


def test_random_levels_mean_the_same_to_the_peer_to_the_kernels_and_in_bf16() -> None:
    made = random_levels(random(), *SHAPE, spread=0.02)
    expected = made.values()
    np.testing.assert_array_equal(gguf.quants.dequantize(made.q4_0(), TYPES.Q4_0), expected)
    np.testing.assert_array_equal(unpack(WeightFormat.Q4_G32, made.q4_g32(), *SHAPE), expected)
    np.testing.assert_array_equal(cut_to_bf16(expected), expected)
    words = np.ascontiguousarray(made.words()).view("<u4")
    columns = [(words >> np.uint32(4 * number)) & np.uint32(15) for number in range(8)]
    np.testing.assert_array_equal(np.stack(columns, -1).reshape(SHAPE), made.levels)


def test_random_levels_are_given_back_by_rounding_and_spread_as_asked() -> None:
    values = random_levels(random(), 64, 1024, spread=0.02).values()
    packed = pack(WeightFormat.Q4_G32, values)
    np.testing.assert_array_equal(unpack(WeightFormat.Q4_G32, packed, 64, 1024), values)
    assert values.std() == pytest.approx(0.02, rel=0.05)
    assert abs(values.mean()) < 0.0004


def test_nearest_levels_are_near() -> None:
    values = random().standard_normal(SHAPE, dtype=np.float32)
    found = nearest_levels(values)
    largest = np.repeat(np.abs(values).reshape(16, -1, GROUP).max(axis=2), GROUP, axis=1)
    assert (np.abs(found.values() - values) <= 0.1 * largest).all()
    np.testing.assert_array_equal(cut_to_bf16(found.values()), found.values())
    np.testing.assert_array_equal(found.scales.astype(np.float16), found.scales)


def test_fours_mean_the_same_to_the_peer_and_as_published() -> None:
    made = random_fours(random(), *SHAPE, spread=0.05)
    codes = np.empty(SHAPE, np.uint8)
    codes[:, ::2], codes[:, 1::2] = made.blocks() & 15, made.blocks() >> 4
    signs = np.where(codes & 8, -1.0, 1.0)
    powers = np.exp2(np.repeat(made.exponents.astype(int) - 127, GROUP, axis=1))
    published = signs * np.array(LEVELS)[codes & 7] * powers
    np.testing.assert_array_equal(gguf.quants.dequantize(made.gguf(), TYPES.MXFP4), published)
    assert 0.03 < published.std() < 0.08


def test_few_bits_are_five_and_near() -> None:
    values = np.linspace(1e-4, 3, 500, dtype=np.float32)
    found = few_bits(values)
    fractions = np.frexp(found)[0] * 32
    np.testing.assert_array_equal(fractions, np.rint(fractions))
    np.testing.assert_allclose(found, values, rtol=1 / 32)


def test_bf16_is_the_upper_half() -> None:
    values = np.array([1.0, -2.5, 1 + 2.0**-9], np.float32)
    assert as_bf16(values).view("<u2").tolist() == [0x3F80, 0xC020, 0x3F80]
    assert cut_to_bf16(values).tolist() == [1.0, -2.5, 1.0]
