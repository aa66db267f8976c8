"""Packing that heeds how much columns count errs less where it counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.kernels.formats import pack, unpack
from runtime.prepare.quantise import error_of
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import matrix_bytes

HEEDING = (
    WeightFormat.Q6_G32,
    WeightFormat.Q4A_G32,
    WeightFormat.Q3_G16,
    WeightFormat.Q2_G16,
)
Floats = np.ndarray


def weighed_error(
    wanted: WeightFormat, weights: Floats, counts: Floats, heeded: Floats | None
) -> float:
    """The squared error of what was packed, each column as often as it counts."""
    rows, columns = weights.shape
    data = pack(wanted, weights, heeded)
    assert data.size == matrix_bytes(wanted, rows, columns)
    changed = unpack(wanted, data, rows, columns) - weights
    assert np.isfinite(changed).all()
    return float((changed**2 * counts).sum() / (weights**2 * counts).sum())


@pytest.mark.parametrize("wanted", HEEDING)
@pytest.mark.parametrize("columns", [256, 200])
def test_columns_that_differ_err_less_where_they_count(wanted: WeightFormat, columns: int) -> None:
    random = np.random.default_rng(7)
    # As after folding a norm: what is large is multiplied with what is small.
    scales = np.exp(random.standard_normal(columns)).astype(np.float32)
    weights = (random.standard_normal((24, columns)) * scales).astype(np.float32)
    counts = 1 / scales**2
    plain = weighed_error(wanted, weights, counts, None)
    heeded = weighed_error(wanted, weights, counts, counts)
    assert heeded < 0.7 * plain


@settings(max_examples=40, deadline=None)
@given(
    wanted=st.sampled_from(HEEDING),
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 17),
    columns=st.integers(1, 70),
    spread=st.floats(0, 3),
)
def test_heeding_is_never_much_worse(
    wanted: WeightFormat, seed: int, rows: int, columns: int, spread: float
) -> None:
    random = np.random.default_rng(seed)
    weights = random.standard_normal((rows, columns)).astype(np.float32)
    counts = np.exp(spread * random.standard_normal(columns)).astype(np.float32)
    plain = weighed_error(wanted, weights, counts, None)
    heeded = weighed_error(wanted, weights, counts, counts)
    # Rounding of scales to units of a row may take a little of what was gained.
    assert heeded <= 1.25 * plain + 1e-6


@pytest.mark.parametrize("wanted", HEEDING)
def test_columns_that_count_nothing_or_all_the_same_change_little(wanted: WeightFormat) -> None:
    weights = np.random.default_rng(3).standard_normal((16, 64)).astype(np.float32)
    counts = np.ones(64, np.float32)
    nothing = pack(wanted, weights, np.zeros(64, np.float32))
    assert np.array_equal(nothing, pack(wanted, weights))
    plain = weighed_error(wanted, weights, counts, None)
    assert weighed_error(wanted, weights, counts, 5 * counts) <= 1.02 * plain
    # One column alone: what else there is bears what it has to.
    counts[1:] = 0
    assert weighed_error(wanted, weights, counts, counts) < 0.15 * plain


def test_error_of_a_format_is_that_of_what_is_written() -> None:
    random = np.random.default_rng(5)
    weights = random.standard_normal((8, 64)).astype(np.float32)
    counts = np.exp(random.standard_normal(64)).astype(np.float32)
    for wanted in HEEDING:
        assert error_of(wanted, weights, counts) == pytest.approx(
            weighed_error(wanted, weights, counts, counts), rel=1e-4
        )
