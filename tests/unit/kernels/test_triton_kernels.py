"""What is put together around Triton's programs, with the reference's products in their place."""

import pytest
import torch

from runtime.kernels.base import ExpertBiases, ExpertStyle
from runtime.kernels.dispatch import choose_device_kernels
from runtime.kernels.matrix import Matrix
from runtime.kernels.reference import ReferenceKernels, weights_of
from runtime.kernels.triton_kernels import MAX_ROWS, TritonKernels
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import expert_layout
from tests.support.kernel_inputs import random_matrix, random_rows, random_slots

REFERENCE = ReferenceKernels()
NUM_TRIED = 21
"""Products with which a format is tried."""
HIDDEN, WIDTH, NUM_EXPERTS, TOP_K = 40, 24, 6, 3


class Products:
    """The reference's products one by one, counted."""

    def __init__(self) -> None:
        self.num_products = 0
        self.most = 0

    def __call__(
        self, matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor
    ) -> torch.Tensor:
        self.num_products += len(matrices)
        self.most = max(self.most, len(matrices))
        rows = [
            weights_of(matrix) @ x[source]
            for matrix, source in zip(matrices, sources.tolist(), strict=True)
        ]
        return torch.stack(rows)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("has_biases", [False, True])
@pytest.mark.parametrize("weight_format", [WeightFormat.Q4_G32, WeightFormat.BF16])
def test_triton_experts_are_those_of_the_reference(
    n: int, has_biases: bool, weight_format: WeightFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = expert_layout(weight_format, HIDDEN, WIDTH)
    # Not all of the chosen experts are asked for in this call.
    slots = random_slots(layout, NUM_EXPERTS)[1:]
    x = random_rows(n, HIDDEN)
    ids, weights = REFERENCE.route(random_rows(n, NUM_EXPERTS, seed=3), TOP_K, is_normalised=True)
    numbers = tuple(number for number, _ in slots)
    biases = ExpertBiases(
        numbers,
        random_rows(len(numbers), WIDTH, seed=4),
        random_rows(len(numbers), WIDTH, seed=5),
        random_rows(len(numbers), HIDDEN, seed=6),
    )
    style = ExpertStyle(biases=biases if has_biases else None)
    expected, found, products = torch.zeros(n, HIDDEN), torch.zeros(n, HIDDEN), Products()
    REFERENCE.experts(x, layout, slots, ids, weights, expected, style)

    monkeypatch.setattr("runtime.kernels.triton_kernels.MAX_PAIRS", 32)
    TritonKernels(products).experts(x, layout, slots, ids, weights, found, style)

    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    num_pairs = int((ids > 0).sum())
    # Of plain numbers, many rows are left to the reference.
    is_used = weight_format is WeightFormat.Q4_G32 or n <= MAX_ROWS
    assert products.num_products == (3 * num_pairs + NUM_TRIED if is_used else 0)
    # An expert that so many rows chose is a launch by itself, the others go together.
    assert products.most <= max(32, NUM_TRIED, int(torch.bincount(ids.flatten()).max()))


def test_triton_experts_that_nobody_chose_add_nothing() -> None:
    layout = expert_layout(WeightFormat.Q8_G32, HIDDEN, WIDTH)
    out = torch.zeros(1, HIDDEN)

    TritonKernels(Products()).experts(
        random_rows(1, HIDDEN),
        layout,
        random_slots(layout, NUM_EXPERTS)[4:],
        torch.tensor([[0, 1]], dtype=torch.int32),
        torch.ones(1, 2),
        out,
    )

    assert not out.any()


@pytest.mark.parametrize("weight_format", [WeightFormat.Q6_G32, WeightFormat.BF16])
@pytest.mark.parametrize("n", [1, MAX_ROWS, MAX_ROWS + 1])
def test_triton_dense_products_are_those_of_the_reference(
    n: int, weight_format: WeightFormat
) -> None:
    matrix, x = random_matrix(weight_format, 24, HIDDEN), random_rows(n, HIDDEN)
    products = Products()
    kernels = TritonKernels(products)

    for bias in (None, random_rows(1, 24)[0]):
        expected = REFERENCE.linear(x, matrix, bias)
        torch.testing.assert_close(kernels.linear(x, matrix, bias), expected)

    assert products.num_products == (2 * n + NUM_TRIED if n <= MAX_ROWS else 0)


@pytest.mark.expects_log("runtime.kernels.triton_kernels", "WARNING")
def test_triton_that_cannot_compile_is_left_to_the_reference(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no C compiler")

    matrix, x = random_matrix(WeightFormat.Q4_G32, 24, HIDDEN), random_rows(2, HIDDEN)

    found = TritonKernels(fail).linear(x, matrix)

    assert torch.equal(found, REFERENCE.linear(x, matrix))
    assert "no Triton programs for q4_g32 here" in caplog.text


@pytest.mark.expects_log("runtime.kernels.triton_kernels", "WARNING")
@pytest.mark.parametrize("wrong", [0.5, float("nan")])
def test_triton_that_comes_to_something_else_is_left_to_the_reference(
    caplog: pytest.LogCaptureFixture, wrong: float
) -> None:
    products = Products()

    def err(matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
        return products(matrices, x, sources) + wrong

    matrix, x = random_matrix(WeightFormat.MXFP4, 24, HIDDEN), random_rows(2, HIDDEN)
    kernels = TritonKernels(err)

    for _ in range(2):
        assert torch.equal(kernels.linear(x, matrix), REFERENCE.linear(x, matrix))
    assert products.num_products == NUM_TRIED
    assert "is not used" in caplog.text


def test_device_without_triton_is_driven_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device_kernels(torch.device("cpu")).name == "reference"
    for is_installed, name in ((False, "reference"), (True, "triton")):
        monkeypatch.setattr("runtime.kernels.dispatch.has_triton", lambda it=is_installed: it)
        assert choose_device_kernels(torch.device("cuda:0")).name == name
