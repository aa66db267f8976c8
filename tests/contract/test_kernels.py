"""Every set of kernels against the reference, or against f64, on odd shapes."""

import numpy as np
import pytest
import torch

from runtime.kernels.activations import GROUPED, as_input, in_eight_bits
from runtime.kernels.base import Kernels, RopeTables
from runtime.kernels.formats import pack
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.kernels.reference import ReferenceKernels, weights_of
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import MatrixLayout, expert_layout, layout_in, matrix_bytes
from tests.support.kernel_inputs import (
    random_matrix,
    random_pages,
    random_rows,
    random_slots,
)

REFERENCE = ReferenceKernels()
SHAPES = [(1, 1, 1), (1, 33, 9), (2, 64, 8), (5, 3, 50), (7, 577, 13), (70, 96, 41), (64, 320, 128)]
MIXED = [
    (WeightFormat.Q4K_G32, WeightFormat.Q4K_G32, WeightFormat.Q6K_G16),
    (WeightFormat.Q2K_G16, WeightFormat.Q3K_G16, WeightFormat.Q5K_G32),
    (WeightFormat.Q8_G32, WeightFormat.Q4_G32, WeightFormat.MXFP4),
    (WeightFormat.F16, WeightFormat.Q4K_G32, WeightFormat.Q8_G32),
    (WeightFormat.Q6_G32, WeightFormat.F32, WeightFormat.BF16),
    (WeightFormat.BF16, WeightFormat.F32, WeightFormat.Q4K_G32),
]
"""Formats of gate, up and down."""
ATTENTION_SHAPES = [
    # rows, heads, KV heads, head width, page tokens, start, window
    (1, 9, 3, 64, 16, 0, 0),
    (1, 9, 3, 64, 16, 150, 0),
    (33, 9, 3, 64, 16, 5, 0),
    (20, 4, 2, 17, 8, 100, 7),
    (40, 6, 6, 80, 32, 0, 3),
    (9, 8, 1, 128, 64, 55, 1000),
    (70, 2, 1, 5, 1, 0, 1),
]


def rounding_bound(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The largest error of a dot product of f32 values in any order of summation.

    k products and k additions err by 2 ** -24 of what they form, which the sum of magnitudes
    bounds; 8 more for scales, padding and the bias.
    """
    magnitudes = x.abs().double() @ weights.abs().double().T
    return (x.shape[1] + 8) * 2.0**-23 * magnitudes + 1e-30


@pytest.mark.parametrize("weight_format", list(WeightFormat))
@pytest.mark.parametrize(("n", "columns", "rows"), SHAPES)
def test_linear_odd_shapes_equal_f64_within_rounding(
    kernels: Kernels, weight_format: WeightFormat, n: int, columns: int, rows: int
) -> None:
    matrix, x = random_matrix(weight_format, rows, columns), random_rows(n, columns)
    weights = weights_of(matrix)
    exact = as_input(weight_format, x).double() @ weights.double().T
    result = kernels.linear(x, matrix)
    assert result.shape == (n, rows)
    assert ((result - exact).abs() <= rounding_bound(x, weights)).all()


@pytest.mark.parametrize("n", [1, 7, 64])
def test_linear_takes_the_lowest_level_of_eight_bits(kernels: Kernels, n: int) -> None:
    """Packing never makes -128; models that were published in eight bits have it."""
    rows, columns = 16, 96
    levels = np.random.default_rng(0).integers(-128, 128, (2, 3, 256)).astype(np.int8)
    levels[:, :, ::3] = -128
    scales = np.full((2, 3, 8), 0.01, np.float16).view(np.uint8)
    data = np.concatenate([scales, levels.view(np.uint8)], axis=2).reshape(-1)
    layout = MatrixLayout(WeightFormat.Q8_G32, rows, columns, 0, len(data))
    matrix, x = Matrix.from_buffer(layout, data), random_rows(n, columns)
    x[0] = 5.0  # Every activation on its outermost level.
    weights = weights_of(matrix)
    assert float(weights.min()) == np.float32(np.float16(0.01)) * -128
    exact = as_input(WeightFormat.Q8_G32, x).double() @ weights.double().T
    result = kernels.linear(x, matrix)
    assert ((result - exact).abs() <= rounding_bound(x, weights)).all()


@pytest.mark.parametrize("weight_format", sorted(GROUPED))
@pytest.mark.parametrize("size", [1e-42, 1e-37, 1e-30, 1e-5, 1e5, 1e30])
def test_linear_extreme_activations_equal_the_definition(
    kernels: Kernels, weight_format: WeightFormat, size: float
) -> None:
    matrix, x = random_matrix(weight_format, 19, 70), random_rows(9, 70)
    x = x * torch.tensor(size, dtype=torch.float32)
    x[3, :32] = 0.0
    x[4, 1] = x.abs().max() * 40
    weights = weights_of(matrix)
    exact = as_input(weight_format, x).double() @ weights.double().T
    result = kernels.linear(x, matrix)
    assert ((result - exact).abs() <= rounding_bound(x, weights)).all()


@pytest.mark.parametrize("weight_format", sorted(GROUPED))
def test_linear_activation_not_a_number_spoils_its_row_alone(
    kernels: Kernels, weight_format: WeightFormat
) -> None:
    matrix, x = random_matrix(weight_format, 19, 70), random_rows(9, 70)
    clean = kernels.linear(x, matrix)
    x[2, 40] = torch.nan
    spoiled = kernels.linear(x, matrix)
    assert spoiled[2].isnan().all()
    assert torch.equal(spoiled[[0, 1, *range(3, 9)]], clean[[0, 1, *range(3, 9)]])


@pytest.mark.parametrize("weight_format", sorted(GROUPED))
def test_linear_highest_levels_do_not_overflow(
    kernels: Kernels, weight_format: WeightFormat
) -> None:
    """All weights on the outermost levels, all activations on level 127, of either sign."""
    for weight, activation in ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)):
        array = np.full((8, 64), weight, np.float32)
        num_bytes = matrix_bytes(weight_format, 8, 64)
        layout = MatrixLayout(weight_format, 8, 64, 0, num_bytes)
        matrix = Matrix.from_buffer(layout, pack(weight_format, array))
        x = torch.full((9, 64), activation)
        exact = in_eight_bits(x).double() @ weights_of(matrix).double().T
        torch.testing.assert_close(kernels.linear(x, matrix).double(), exact, rtol=1e-6, atol=0)


def test_linear_with_bias_adds_it_to_every_row(kernels: Kernels) -> None:
    matrix, x, bias = random_matrix(WeightFormat.BF16, 21, 40), random_rows(11, 40), random_rows(21)
    torch.testing.assert_close(
        kernels.linear(x, matrix, bias) - kernels.linear(x, matrix),
        bias.expand(11, 21),
        rtol=0,
        atol=1e-5,
    )


def check_block(
    result: torch.Tensor, expected: torch.Tensor, weight_format: WeightFormat, level: float
) -> None:
    """Compare results of a feed-forward block.

    Three products with sums of up to 65 terms, exponentials good to 2 units in the last place.
    In the grouped formats what stands between the matrices is rounded to levels: where it lies
    between two of them, rounding elsewhere can take the other, which moves the outputs of that row
    by up to ``level``; so near is about one of ten thousand.
    """
    if weight_format not in GROUPED:
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
        return
    error = (result - expected).abs()
    is_near = (error <= 1e-4 + 1e-4 * expected.abs()).all(dim=1)
    assert is_near.float().mean() >= 0.9 or len(result) == 1
    assert (error <= level).all()


@pytest.mark.parametrize("weight_format", list(WeightFormat))
def test_gated_odd_shapes_equal_reference(kernels: Kernels, weight_format: WeightFormat) -> None:
    gate, up = (random_matrix(weight_format, 37, 65, seed) for seed in (1, 2))
    down, x = random_matrix(weight_format, 65, 37, 3), random_rows(50, 65) * 0.1
    expected = REFERENCE.gated(x, gate, up, down)
    result = kernels.gated(x, gate, up, down)
    hidden = REFERENCE.linear(x, gate).abs() * REFERENCE.linear(x, up).abs()
    level = float(hidden.max() * weights_of(down).abs().max()) / 127
    check_block(result, expected, weight_format, 2 * level)


def test_gated_extreme_inputs_stay_finite(kernels: Kernels) -> None:
    one = random_matrix(WeightFormat.F32, 1, 1)
    x = torch.tensor([[0.0], [-1e4], [1e4], [-100.0], [100.0]])
    result = kernels.gated(x, one, one, one)
    assert torch.isfinite(result).all()
    torch.testing.assert_close(result, REFERENCE.gated(x, one, one, one), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("weight_format", list(WeightFormat))
@pytest.mark.parametrize(("n", "hidden", "width"), [(1, 96, 33), (23, 65, 32), (70, 64, 7)])
def test_experts_odd_shapes_equal_reference(
    kernels: Kernels, weight_format: WeightFormat, n: int, hidden: int, width: int
) -> None:
    layout = expert_layout(weight_format, hidden, width)
    slots, x = random_slots(layout, 6), random_rows(n, hidden)
    ids, weights = REFERENCE.route(random_rows(n, 6, seed=4), 3, is_normalised=True)
    out, expected = random_rows(n, hidden, seed=5), random_rows(n, hidden, seed=5)
    kernels.experts(x, layout, slots, ids, weights, out)
    REFERENCE.experts(x, layout, slots, ids, weights, expected)
    # Weights are below 1, activations of 65 inputs and channels below 16.
    check_block(out, expected, weight_format, 16 / 127)


@pytest.mark.parametrize("formats", MIXED)
@pytest.mark.parametrize("n", [1, 23])
def test_experts_with_matrices_in_several_formats_equal_reference(
    kernels: Kernels, formats: tuple[WeightFormat, ...], n: int
) -> None:
    hidden, width = 65, 37
    layout = layout_in(formats, hidden, width)
    slots, x = random_slots(layout, 6), random_rows(n, hidden)
    ids, weights = REFERENCE.route(random_rows(n, 6, seed=4), 3, is_normalised=True)
    out, expected = random_rows(n, hidden, seed=5), random_rows(n, hidden, seed=5)
    kernels.experts(x, layout, slots, ids, weights, out)
    REFERENCE.experts(x, layout, slots, ids, weights, expected)
    # What stands before the last matrix is rounded as that one takes it.
    check_block(out, expected, formats[-1], 16 / 127)


@pytest.mark.parametrize("formats", MIXED)
def test_gated_with_matrices_in_several_formats_equals_reference(
    kernels: Kernels, formats: tuple[WeightFormat, ...]
) -> None:
    gate, up = random_matrix(formats[0], 37, 65, 1), random_matrix(formats[1], 37, 65, 2)
    down, x = random_matrix(formats[2], 65, 37, 3), random_rows(50, 65) * 0.1
    hidden = REFERENCE.linear(x, gate).abs() * REFERENCE.linear(x, up).abs()
    level = float(hidden.max() * weights_of(down).abs().max()) / 127
    expected = REFERENCE.gated(x, gate, up, down)
    check_block(kernels.gated(x, gate, up, down), expected, formats[2], 2 * level)


def test_experts_not_given_contribute_nothing(kernels: Kernels) -> None:
    layout = expert_layout(WeightFormat.F16, 32, 16)
    slots, x = random_slots(layout, 4), random_rows(3, 32)
    ids = torch.tensor([[0, 3], [1, 2], [0, 1]], dtype=torch.int32)
    weights = torch.full((3, 2), 0.5)
    out = torch.zeros(3, 32)
    kernels.experts(x, layout, slots[3:], ids, weights, out)
    assert out[0].abs().max() > 0
    assert (out[1:] == 0).all()
    kernels.experts(x, layout, [], ids, weights, out)
    assert (out[1:] == 0).all()


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 576), (2, 3, 33)])
def test_rms_norm_odd_shapes_equal_f64(kernels: Kernels, shape: tuple[int, ...]) -> None:
    x, weight = random_rows(*shape), random_rows(shape[-1], seed=1)
    double = x.double()
    exact = double / (double.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight
    result = kernels.rms_norm(x, weight, 1e-5)
    torch.testing.assert_close(result, exact.float(), rtol=1e-5, atol=1e-6)


def test_rope_turns_pairs_and_leaves_the_rest(kernels: Kernels) -> None:
    angles = torch.outer(torch.arange(40.0), 100.0 ** -torch.linspace(0, 1, 5))
    tables = RopeTables(angles.cos(), angles.sin())
    x = random_rows(6, 3, 12)
    before = x.clone()
    kernels.rope(x, 30, tables)
    turned = torch.polar(torch.ones(6, 1, 5), angles[30:36].unsqueeze(1)) * torch.complex(
        before[..., :5], before[..., 5:10]
    )
    torch.testing.assert_close(x[..., :5], turned.real, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(x[..., 5:10], turned.imag, rtol=1e-5, atol=1e-6)
    assert torch.equal(x[..., 10:], before[..., 10:])


@pytest.mark.parametrize("is_normalised", [True, False])
@pytest.mark.parametrize(("n", "num_experts", "top_k"), [(1, 4, 4), (9, 60, 4), (30, 512, 10)])
def test_route_equals_softmax_then_topk(
    kernels: Kernels, n: int, num_experts: int, top_k: int, is_normalised: bool
) -> None:
    logits = random_rows(n, num_experts) * 3
    shares, chosen = torch.softmax(logits, -1).topk(top_k)
    order = chosen.argsort(-1)
    expected = shares.gather(1, order)
    if is_normalised:
        expected = expected / expected.sum(-1, keepdim=True)
    ids, weights = kernels.route(logits, top_k, is_normalised=is_normalised)
    assert ids.dtype is torch.int32
    assert torch.equal(ids.long(), chosen.gather(1, order))
    torch.testing.assert_close(weights, expected, rtol=2e-6, atol=1e-9)  # two units, one division


def test_route_equal_logits_choose_lower_ids(kernels: Kernels) -> None:
    logits = torch.tensor([[1.0, 2.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [-1.0, 3.0, 3.0, 3.0]])
    ids, weights = kernels.route(logits, 2, is_normalised=True)
    assert ids.tolist() == [[0, 1], [0, 1], [1, 2]]
    torch.testing.assert_close(weights[1:], torch.full((2, 2), 0.5))


@pytest.mark.parametrize("shape", ATTENTION_SHAPES)
def test_attention_equals_scaled_dot_product(
    kernels: Kernels, shape: tuple[int, int, int, int, int, int, int]
) -> None:
    n, heads, kv_heads, width, page_tokens, start, window = shape
    pages, q = random_pages(start + n, page_tokens, kv_heads, width), random_rows(n, heads, width)
    own = torch.arange(start, start + n).unsqueeze(1)
    other = torch.arange(start + n)
    is_seen = (other <= own) & (other > own - (window or start + n))
    keys, values = (torch.cat(part)[: start + n] for part in (pages.keys, pages.values))
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1),
        keys.transpose(0, 1).repeat_interleave(heads // kv_heads, 0),
        values.transpose(0, 1).repeat_interleave(heads // kv_heads, 0),
        attn_mask=is_seen,
        scale=0.3,
    )
    result = kernels.attention(q, pages, start, scale=0.3, window=window)
    # Shares sum to one over values of size one; the error is that of scores of up to 128 terms.
    torch.testing.assert_close(
        result, expected.transpose(0, 1).reshape(n, -1), rtol=1e-4, atol=2e-5
    )


def test_store_kv_across_pages_fills_the_positions(kernels: Kernels) -> None:
    pages = KvPages(4, 2, 3)
    pages.extend([(torch.zeros(4, 2, 3), torch.zeros(4, 2, 3)) for _ in range(3)])
    keys, values = random_rows(7, 2, 3), random_rows(7, 2, 3, seed=1)
    kernels.store_kv(pages, 3, keys, values)
    assert torch.equal(torch.cat(pages.keys)[3:10], keys)
    assert torch.equal(torch.cat(pages.values)[3:10], values)
    assert (torch.cat(pages.keys)[[0, 1, 2, 10, 11]] == 0).all()


@pytest.mark.parametrize("weight_format", list(WeightFormat))
@pytest.mark.parametrize("id_type", [torch.int32, torch.int64])
def test_embed_gathers_unpacked_rows_exactly(
    kernels: Kernels, weight_format: WeightFormat, id_type: torch.dtype
) -> None:
    matrix = random_matrix(weight_format, 21, 45)
    ids = torch.tensor([20, 0, 7, 7, 13], dtype=id_type)
    assert torch.equal(kernels.embed(matrix, ids), weights_of(matrix)[ids.long()])


def test_embed_unknown_id_is_refused(kernels: Kernels) -> None:
    with pytest.raises(IndexError):
        kernels.embed(random_matrix(WeightFormat.F32, 4, 4), torch.tensor([4]))


def test_add_gated_scales_rows_by_sigmoid(kernels: Kernels) -> None:
    out, x, logits = random_rows(4, 37), random_rows(4, 37, seed=1), random_rows(4, 1, seed=2) * 9
    expected = out + torch.sigmoid(logits) * x
    kernels.add_gated(out, x, logits)
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)
