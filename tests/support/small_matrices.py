"""Any matrices of few rows, as Hypothesis draws them."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np

SMALL_MATRICES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 10), st.integers(1, 300)),
    elements=st.floats(-100, 100, width=32),
)
"""Of up to 10 x 300 finite weights, which fill no blocks."""
