"""Calibrated models repeat parts of kept traces that are like the whole."""

import pytest

from benchmarks.calibrated.likeness import MAX_POINTS, beginning, points_apart, typical_part
from benchmarks.calibrated.shapes import SHAPES, TRACES
from runtime.simulate.trace_files import read_trace


@pytest.mark.parametrize("name", SHAPES)
def test_part_has_reuse_skew_and_hits_of_its_trace(name: str) -> None:
    whole = read_trace(TRACES / SHAPES[name].trace)
    whole = whole.only_layers(range(0, 3 * (whole.num_layers // 3), whole.num_layers // 3))
    apart = points_apart(typical_part(whole, 1024), beginning(whole))
    assert len(apart) == 12
    assert max(map(abs, apart.values())) < MAX_POINTS, apart
