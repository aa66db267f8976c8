"""What kernels put together from simpler ones: against definitions, and the same bits per row."""

from collections.abc import Callable, Iterator

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from runtime.kernels.base import ExpertBiases, ExpertStyle, HeadRows, Kernels, RopeTables
from runtime.kernels.reference import ReferenceKernels, weights_of
from runtime.protocol.values import WeightFormat
from runtime.spec.blocks import Activation, ActivationKind, ExpertGroups, Routing, Score
from runtime.spec.tensors import ExpertPart, expert_layout
from tests.support.kernel_inputs import (
    native_kernels,
    random_matrix,
    random_pages,
    random_rows,
    random_slots,
    usable_instruction_sets,
)

REFERENCE = ReferenceKernels()
TOLERANCE = 2e-5
"""Of sums of some hundred products of numbers near 1, which err by 2 ** -24 each."""
GELU = Activation(ActivationKind.GELU_TANH)
CLAMPED = Activation(ActivationKind.CLAMPED_SWIGLU, limit=0.9, alpha=1.702)
ROUTINGS = [
    Routing(top_k=3, score=Score.SIGMOID, is_normalised=True, scale=2.5, has_correction=True),
    Routing(top_k=4, score=Score.SIGMOID, groups=ExpertGroups(4, 2, 2), has_correction=True),
    Routing(top_k=2, groups=ExpertGroups(4, 1, 1), scale=16.0),
    Routing(top_k=3, is_normalised=True, least_sum=0.9, has_correction=True),
    Routing(top_k=2, score=Score.SPARSE_MIXER, jitter=0.1),
]
few = settings(max_examples=15)


def between(gate: torch.Tensor, up: torch.Tensor, activation: Activation) -> torch.Tensor:
    """The definition of each activation, in f64."""
    gate, up = gate.double(), up.double()
    if activation.kind is ActivationKind.GELU_TANH:
        inner = (2 / torch.pi) ** 0.5 * (gate + 0.044715 * gate**3)
        return 0.5 * gate * (1 + inner.tanh()) * up
    gate = gate.clamp(max=activation.limit)
    up = up.clamp(-activation.limit, activation.limit)
    return gate / (1 + (-activation.alpha * gate).exp()) * (up + 1)


@pytest.mark.parametrize("activation", [GELU, CLAMPED])
@pytest.mark.parametrize("width", [1, 7, 64, 100])
def test_gated_follows_the_activation(kernels: Kernels, activation: Activation, width: int) -> None:
    x = random_rows(5, 33, seed=1)
    gate, up, down = (
        random_matrix(WeightFormat.F32, rows, columns, seed)
        for seed, (rows, columns) in enumerate(((width, 33), (width, 33), (33, width)))
    )
    found = kernels.gated(x, gate, up, down, activation)

    hidden = between(
        x.double() @ weights_of(gate).double().T, x.double() @ weights_of(up).double().T, activation
    )
    expected = hidden @ weights_of(down).double().T
    bound = TOLERANCE * float(expected.abs().max())
    torch.testing.assert_close(found.double(), expected, atol=bound, rtol=0)


def biased_style(numbers: tuple[int, ...], width: int, hidden: int) -> ExpertStyle:
    rows = len(numbers)
    biases = ExpertBiases(
        numbers,
        random_rows(rows, width, seed=11),
        random_rows(rows, width, seed=12),
        random_rows(rows, hidden, seed=13),
    )
    return ExpertStyle(CLAMPED, biases)


def test_experts_with_biases_follow_their_definition(kernels: Kernels) -> None:
    n, hidden, width = 6, 24, 19
    layout = expert_layout(WeightFormat.F32, hidden, width)
    pairs = random_slots(layout, 4, seed=3)
    x, weights = random_rows(n, hidden, seed=4), random_rows(n, 2, seed=5)
    ids = torch.tensor([[0, 1], [1, 3], [0, 3], [2, 3], [0, 2], [1, 2]], dtype=torch.int32)
    # The biases come in another order than the experts, as for a part of them.
    style = biased_style((3, 1, 0, 2), width, hidden)
    out = torch.zeros(n, hidden)
    kernels.experts(x, layout, pairs, ids, weights, out, style)

    expected = torch.zeros(n, hidden, dtype=torch.float64)
    assert style.biases is not None
    for number, slot in pairs:
        parts = {key: weights_of(m).double() for key, m in slot.matrices(layout.parts).items()}
        gate_bias, up_bias, down_bias = style.biases.of(number)
        inner = between(
            x.double() @ parts[ExpertPart.GATE].T + gate_bias,
            x.double() @ parts[ExpertPart.UP].T + up_bias,
            CLAMPED,
        )
        result = inner @ parts[ExpertPart.DOWN].T + down_bias
        share = (weights.double() * (ids == number)).sum(dim=1, keepdim=True)
        expected += share * result
    torch.testing.assert_close(out.double(), expected, atol=TOLERANCE, rtol=TOLERANCE)


def test_sinks_take_their_share_of_the_weights(kernels: Kernels) -> None:
    n, heads, dim, start = 9, 6, 16, 20
    q, sinks = random_rows(n, heads, dim, seed=1), random_rows(heads, seed=2)
    pages = random_pages(start + n, 8, 2, dim, seed=3)
    for window in (0, 5):
        found = kernels.attention(q, pages, start, scale=0.25, window=window, sinks=sinks)
        keys, values = (
            part[: start + n].double().repeat_interleave(3, dim=1)
            for part in (torch.cat(pages.keys), torch.cat(pages.values))
        )
        for row in range(n):
            end = start + row + 1
            first = max(0, end - window) if window else 0
            scores = torch.einsum("hd,thd->ht", q[row].double(), keys[first:end]) * 0.25
            weights = scores.exp() / (
                scores.exp().sum(1, keepdim=True) + sinks.double().exp()[:, None]
            )
            expected = torch.einsum("ht,thd->hd", weights, values[first:end]).flatten()
            torch.testing.assert_close(found[row].double(), expected, atol=TOLERANCE, rtol=0)


def test_interleaved_rope_turns_neighbours(kernels: Kernels) -> None:
    n, heads, dim, start = 5, 3, 12, 4
    angles = random_rows(16, 4, seed=1)
    x = random_rows(n, heads, dim, seed=2)
    turned = x.clone()
    kernels.rope(turned, start, RopeTables(angles.cos(), angles.sin(), is_interleaved=True))

    pairs = torch.view_as_complex(x[..., :8].double().reshape(n, heads, 4, 2))
    turns = torch.polar(torch.ones(n, 1, 4).double(), angles[start : start + n, None].double())
    expected = torch.view_as_real(pairs * turns).flatten(2)
    torch.testing.assert_close(turned[..., :8].double(), expected, atol=1e-6, rtol=0)
    assert torch.equal(turned[..., 8:], x[..., 8:])


@pytest.mark.parametrize(
    "weight_format", [WeightFormat.F32, WeightFormat.BF16, WeightFormat.Q8_G32]
)
def test_heads_linear_uses_each_heads_own_rows(
    kernels: Kernels, weight_format: WeightFormat
) -> None:
    heads, block, columns = 3, 10, 14
    matrix = random_matrix(weight_format, heads * block, columns)
    blocks = weights_of(matrix).double().view(heads, block, columns)
    into = random_rows(4, heads, 6, seed=1)
    found = kernels.heads_linear(into, matrix, HeadRows(2, 8, is_transposed=True))
    expected = torch.einsum("nhr,hrc->nhc", into.double(), blocks[:, 2:8])
    torch.testing.assert_close(found.double(), expected, atol=TOLERANCE, rtol=TOLERANCE)
    out_of = random_rows(4, heads, columns, seed=2)
    found = kernels.heads_linear(out_of, matrix, HeadRows(2, 8, is_transposed=False))
    expected = torch.einsum("nhc,hrc->nhr", out_of.double(), blocks[:, 2:8])
    torch.testing.assert_close(found.double(), expected, atol=TOLERANCE, rtol=TOLERANCE)


def test_layer_norm_follows_its_definition(kernels: Kernels) -> None:
    x, weight, bias = random_rows(4, 37), random_rows(37, seed=1), random_rows(37, seed=2)
    wide = x.double()
    variance = wide.var(dim=1, keepdim=True, unbiased=False)
    expected = (wide - wide.mean(dim=1, keepdim=True)) / (variance + 1e-5).sqrt() * weight + bias
    found = kernels.layer_norm(x, weight, bias, 1e-5)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_choice_ascends_and_lower_ids_win_among_equals(kernels: Kernels, routing: Routing) -> None:
    correction = torch.zeros(16) if routing.has_correction else None
    ids, weights = kernels.choose(torch.zeros(3, 16), routing, correction)
    assert ids.dtype is torch.int32
    assert ids.tolist() == [list(range(routing.top_k))] * 3
    assert weights.shape == (3, routing.top_k)
    assert (weights > 0).all()


def rows_alone(
    instruction_set: str, compute: Callable[[Kernels, slice], torch.Tensor], n: int, cut: int
) -> None:
    """Compare all rows together with two parts of them, with other numbers of threads."""
    with native_kernels(instruction_set, 3) as kernels:
        together = compute(kernels, slice(0, n))
    with native_kernels(instruction_set, 1) as kernels:
        parts = [compute(kernels, slice(0, cut)), compute(kernels, slice(cut, n))]
    assert torch.equal(together, torch.cat(parts))


@pytest.fixture
def _one_torch_thread() -> Iterator[None]:
    """As ``choose_kernels`` leaves torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


each_instruction_set = pytest.mark.parametrize("instruction_set", usable_instruction_sets())
cuts = st.integers(2, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1)))


@pytest.mark.usefixtures("_one_torch_thread")
@each_instruction_set
@few
@given(cut=cuts, width=st.integers(1, 150), num_experts=st.sampled_from([8, 16, 24]))
def test_composed_row_alone_has_the_same_bits(
    instruction_set: str, cut: tuple[int, int], width: int, num_experts: int
) -> None:
    n, first = cut
    x = random_rows(n, 20, seed=1)
    gate, up, down = (
        random_matrix(WeightFormat.BF16, rows, columns, seed)
        for seed, (rows, columns) in enumerate(((width, 20), (width, 20), (20, width)))
    )
    for activation in (GELU, CLAMPED):

        def gate_rows(kernels: Kernels, rows: slice, kind: Activation = activation) -> torch.Tensor:
            return kernels.gated(x[rows], gate, up, down, kind)

        rows_alone(instruction_set, gate_rows, n, first)
    logits, correction = random_rows(n, num_experts, seed=2), random_rows(num_experts, seed=3)
    for routing in ROUTINGS:

        def weigh_rows(kernels: Kernels, rows: slice, rule: Routing = routing) -> torch.Tensor:
            extra = correction if rule.has_correction else None
            return kernels.choose(logits[rows], rule, extra)[1]

        rows_alone(instruction_set, weigh_rows, n, first)
    weight, bias = random_rows(width, seed=4), random_rows(width, seed=5)
    wide = random_rows(n, width, seed=6)
    rows_alone(
        instruction_set,
        lambda kernels, rows: kernels.layer_norm(wide[rows], weight, bias, 1e-5),
        n,
        first,
    )


@pytest.mark.usefixtures("_one_torch_thread")
@each_instruction_set
@few
@given(cut=cuts, dim=st.integers(1, 70), start=st.integers(0, 30), window=st.sampled_from([0, 6]))
def test_composed_attention_row_alone_has_the_same_bits(
    instruction_set: str, cut: tuple[int, int], dim: int, start: int, window: int
) -> None:
    n, first = cut
    q, sinks = random_rows(n, 4, dim, seed=1), random_rows(4, seed=2)
    pages = random_pages(start + n, 8, 2, dim, seed=3)
    rows_alone(
        instruction_set,
        lambda kernels, rows: kernels.attention(
            q[rows], pages, start + rows.start, scale=0.3, window=window, sinks=sinks
        ),
        n,
        first,
    )
    matrix = random_matrix(WeightFormat.BF16, 4 * (dim + 3), 21)
    rows_alone(
        instruction_set,
        lambda kernels, rows: kernels.heads_linear(
            q[rows], matrix, HeadRows(0, dim, is_transposed=True)
        ),
        n,
        first,
    )
