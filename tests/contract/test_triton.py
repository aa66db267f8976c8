"""Triton's programs for packed weights, in Triton's interpreter and compiled for cards of NVIDIA.

They run where Triton is installed and told to interpret from the beginning: `make deep triton`
sees to both.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch

from runtime.kernels.activations import GROUPED, as_input
from runtime.kernels.base import ExpertStyle
from runtime.kernels.reference import ReferenceKernels, weights_of
from runtime.kernels.tiles import TILES, Tile, TileChoice
from runtime.kernels.triton_kernels import (
    MAX_ROWS,
    TritonKernels,
    _multiply_by_triton,
    has_triton,
)
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import PLAIN_FORMATS, expert_layout, layout_in
from tests.contract.test_kernels import rounding_bound
from tests.support.kernel_inputs import random_matrix, random_rows, random_slots

INTERPRET = "TRITON_INTERPRET"
REFERENCE = ReferenceKernels()
SHAPES = [(1, 1, 1), (1, 33, 9), (2, 64, 8), (5, 3, 50), (7, 577, 13), (1, 320, 130)]
MANY_SHAPES = [(17, 70, 41), (40, 33, 9)]
pytestmark = [
    pytest.mark.skipif(
        not has_triton() or os.environ.get(INTERPRET) != "1",
        reason="Triton is not installed, or not told to interpret",
    ),
    pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION"),
]


@pytest.fixture(scope="module")
def kernels() -> TritonKernels:
    """Programs that the interpreter runs."""
    return TritonKernels()


@pytest.mark.parametrize("weight_format", sorted(WeightFormat))
@pytest.mark.parametrize(("n", "columns", "rows"), SHAPES)
def test_triton_odd_shapes_equal_f64_within_rounding(
    kernels: TritonKernels, weight_format: WeightFormat, n: int, columns: int, rows: int
) -> None:
    matrix, x = random_matrix(weight_format, rows, columns), random_rows(n, columns)
    weights = weights_of(matrix)
    exact = as_input(weight_format, x).double() @ weights.double().T

    result = kernels.linear(x, matrix)

    assert kernels._is_trusted[weight_format]
    assert result.shape == (n, rows)
    assert ((result - exact).abs() <= rounding_bound(x, weights)).all()


@pytest.mark.parametrize("tile", TILES[1:])
@pytest.mark.parametrize("weight_format", [WeightFormat.Q4A_G32, WeightFormat.BF16])
def test_triton_every_tile_gives_the_same(weight_format: WeightFormat, tile: Tile) -> None:
    matrix, x = random_matrix(weight_format, 50, 300), random_rows(2, 300)
    tried: list[Tile] = []

    def measure(work: Callable[[], object]) -> float:
        work()
        tried.append(TILES[len(tried)])
        return float(tried[-1] is not tile)

    own = functools.partial(_multiply_by_triton, tiles=TileChoice(measure))
    sources = torch.arange(2)
    expected = REFERENCE.linear(x, matrix)

    found = own([matrix] * 2, as_input(weight_format, x).contiguous(), sources)

    assert tried == list(TILES)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("weight_format", sorted(GROUPED))
@pytest.mark.parametrize(("n", "columns", "rows"), MANY_SHAPES)
def test_triton_many_rows_of_several_matrices_equal_f64_within_rounding(
    kernels: TritonKernels, weight_format: WeightFormat, n: int, columns: int, rows: int
) -> None:
    matrices = [random_matrix(weight_format, rows, columns, seed) for seed in range(2)]
    x = random_rows(n, columns)
    sources = torch.arange(n).flip(0)
    pairs = [matrices[index > n // 3] for index in range(n)]

    result = kernels._product(pairs, x, sources)

    seen = as_input(weight_format, x)
    for index, (matrix, source) in enumerate(zip(pairs, sources.tolist(), strict=True)):
        weights = weights_of(matrix)
        exact = seen[source : source + 1].double() @ weights.double().T
        bound = rounding_bound(x[source : source + 1], weights)
        assert ((result[index : index + 1] - exact).abs() <= bound).all()


@pytest.mark.parametrize("n", [3, 24])
@pytest.mark.parametrize("weight_format", sorted(WeightFormat))
def test_triton_experts_equal_the_reference(
    kernels: TritonKernels, weight_format: WeightFormat, n: int
) -> None:
    layout = expert_layout(weight_format, 70, 41)
    slots = random_slots(layout, 5)
    x = random_rows(n, 70)
    ids, weights = REFERENCE.route(random_rows(n, 5, seed=3), 2, is_normalised=True)
    expected, found = torch.zeros(n, 70), torch.zeros(n, 70)
    style = ExpertStyle()
    REFERENCE.experts(x, layout, slots, ids, weights, expected, style)

    kernels.experts(x, layout, slots, ids, weights, found, style)

    if weight_format in GROUPED or n <= MAX_ROWS:
        assert kernels._is_trusted[weight_format]
    # What lies between the matrices is rounded to eight bits, where a rounding may fall otherwise.
    assert (found - expected).norm() <= 2e-3 * expected.norm()


@pytest.mark.parametrize("n", [3, 24])
@pytest.mark.parametrize(
    "formats",
    [
        (WeightFormat.Q4K_G32, WeightFormat.Q4K_G32, WeightFormat.Q6K_G16),
        (WeightFormat.F16, WeightFormat.Q4_G32, WeightFormat.BF16),
    ],
)
def test_triton_experts_with_matrices_in_several_formats_equal_the_reference(
    kernels: TritonKernels, formats: tuple[WeightFormat, ...], n: int
) -> None:
    layout = layout_in(formats, 70, 41)
    slots, x = random_slots(layout, 5), random_rows(n, 70)
    ids, weights = REFERENCE.route(random_rows(n, 5, seed=3), 2, is_normalised=True)
    expected, found = torch.zeros(n, 70), torch.zeros(n, 70)
    REFERENCE.experts(x, layout, slots, ids, weights, expected)

    kernels.experts(x, layout, slots, ids, weights, found)

    assert all(kernels._is_trusted[each] for each in formats)
    assert (found - expected).norm() <= 2e-3 * expected.norm()


@pytest.mark.parametrize("capability", [75, 86, 90])
def test_triton_programs_compile_for_cards(capability: int) -> None:
    """To machine code, in a process of its own that does not interpret; no card is needed."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.triton_compile", str(capability)],
        env={name: value for name, value in os.environ.items() if name != INTERPRET},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert run.returncode == 0, run.stderr[-2000:]
    sizes = {name: int(size) for name, size in (line.split() for line in run.stdout.splitlines())}
    names = {str(weight_format) for weight_format in GROUPED}
    plain = {str(weight_format) for weight_format in PLAIN_FORMATS}
    assert set(sizes) == names | {f"{name}-grouped" for name in names} | plain
    assert min(sizes.values()) > 1000
