"""Tests of bfloat16 on numpy arrays."""

from __future__ import annotations

import numpy as np
import pytest

from resources.demo.rounding import from_bf16_bits, to_bf16_bits


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80),
        (-2.0, 0xC000),
        (1.0 + 2.0**-8, 0x3F80),  # a tie goes to the even neighbour below
        (1.0 + 3 * 2.0**-8, 0x3F82),  # and to the even neighbour above
        (1.0 + 2.0**-8 + 2.0**-20, 0x3F81),
        (0.0, 0x0000),
    ],
)
def test_to_bf16_bits_rounds_to_nearest_even(value: float, bits: int) -> None:
    assert int(to_bf16_bits(np.asarray([value], np.float32))[0]) == bits


def test_rounding_twice_changes_nothing() -> None:
    values = np.random.default_rng(3).normal(size=1000).astype(np.float32)
    once = from_bf16_bits(to_bf16_bits(values))
    np.testing.assert_array_equal(from_bf16_bits(to_bf16_bits(once)), once)
    np.testing.assert_allclose(once, values, rtol=2.0**-8)
