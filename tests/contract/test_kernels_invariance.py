"""The promise of native kernels: a row's bits do not depend on the call around it."""

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from runtime.kernels.base import RopeTables
from runtime.kernels.native import NativeKernels
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import layout_in
from tests.support.kernel_inputs import (
    native_kernels,
    random_matrix,
    random_pages,
    random_rows,
    random_slots,
    usable_instruction_sets,
)

formats = st.sampled_from(list(WeightFormat))
three_formats = st.one_of(
    formats.map(lambda each: (each, each, each)), st.tuples(formats, formats, formats)
)
"""Of gate, up and down: all alike, or each its own."""
row_counts = st.integers(1, 70)
widths = st.integers(1, 150)
thread_counts = st.integers(1, 8)
each_instruction_set = pytest.mark.parametrize("instruction_set", usable_instruction_sets())
few = settings(max_examples=25)


@st.composite
def cuts(draw: st.DrawFn) -> tuple[int, int, int]:
    """A number of rows, and a part of them as [first, end)."""
    n = draw(row_counts)
    first = draw(st.integers(0, n - 1))
    return n, first, draw(st.integers(first + 1, n))


def check(
    instruction_set: str,
    threads: int,
    cut: tuple[int, int, int],
    compute: Callable[[NativeKernels, slice], torch.Tensor],
) -> None:
    """Compare a part of the rows, computed alone on one thread, with the same rows of all."""
    n, first, end = cut
    with native_kernels(instruction_set, threads) as kernels:
        together = compute(kernels, slice(0, n))
    with native_kernels(instruction_set, 1) as kernels:
        alone = compute(kernels, slice(first, end))
    assert torch.equal(together[first:end], alone)


@each_instruction_set
@few
@given(weight_format=formats, cut=cuts(), rows=widths, columns=widths, threads=thread_counts)
def test_linear_row_alone_has_the_same_bits(
    instruction_set: str,
    weight_format: WeightFormat,
    cut: tuple[int, int, int],
    rows: int,
    columns: int,
    threads: int,
) -> None:
    matrix, x = random_matrix(weight_format, rows, columns), random_rows(cut[0], columns)
    bias = random_rows(rows, seed=1)
    check(
        instruction_set, threads, cut, lambda kernels, part: kernels.linear(x[part], matrix, bias)
    )


@each_instruction_set
@few
@given(parts=three_formats, cut=cuts(), hidden=widths, width=widths, threads=thread_counts)
def test_gated_row_alone_has_the_same_bits(
    instruction_set: str,
    parts: tuple[WeightFormat, ...],
    cut: tuple[int, int, int],
    hidden: int,
    width: int,
    threads: int,
) -> None:
    gate, up = (random_matrix(parts[place], width, hidden, place + 1) for place in (0, 1))
    down, x = random_matrix(parts[2], hidden, width, 3), random_rows(cut[0], hidden)
    check(
        instruction_set, threads, cut, lambda kernels, part: kernels.gated(x[part], gate, up, down)
    )


@each_instruction_set
@few
@given(
    parts=three_formats,
    cut=cuts(),
    hidden=widths,
    width=widths,
    threads=thread_counts,
    split=st.integers(0, 5),
)
def test_experts_row_alone_in_several_calls_has_the_same_bits(
    instruction_set: str,
    parts: tuple[WeightFormat, ...],
    cut: tuple[int, int, int],
    hidden: int,
    width: int,
    threads: int,
    split: int,
) -> None:
    n, first, end = cut
    layout = layout_in(parts, hidden, width)
    slots, x = random_slots(layout, 5), random_rows(n, hidden)
    with native_kernels(instruction_set, threads) as kernels:
        ids, weights = kernels.route(random_rows(n, 5, seed=2), 3, is_normalised=True)
        together = random_rows(n, hidden, seed=3)
        kernels.experts(x, layout, slots, ids, weights, together)
    with native_kernels(instruction_set, 1) as kernels:
        alone = random_rows(n, hidden, seed=3)[first:end].clone()
        for some in (slots[:split], slots[split:]):
            part = (ids[first:end], weights[first:end])
            kernels.experts(x[first:end], layout, some, *part, alone)
    assert torch.equal(together[first:end], alone)


@each_instruction_set
@few
@given(
    cut=cuts(),
    start=st.integers(0, 90),
    window=st.integers(0, 40),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 80)),
    page_tokens=st.integers(1, 40),
    threads=thread_counts,
)
def test_attention_row_alone_in_other_pages_has_the_same_bits(
    instruction_set: str,
    cut: tuple[int, int, int],
    start: int,
    window: int,
    shape: tuple[int, int, int],
    page_tokens: int,
    threads: int,
) -> None:
    n, first, end = cut
    kv_heads, group, head_dim = shape
    q = random_rows(n, kv_heads * group, head_dim)
    pages = random_pages(start + n, start + n, kv_heads, head_dim)
    smaller = random_pages(start + n, page_tokens, kv_heads, head_dim, seed=1)
    keys, values = (torch.cat(part)[: start + n] for part in (pages.keys, pages.values))
    with native_kernels(instruction_set, threads) as kernels:
        together = kernels.attention(q, pages, start, scale=0.4, window=window)
    with native_kernels(instruction_set, 1) as kernels:
        kernels.store_kv(smaller, 0, keys, values)
        alone = kernels.attention(q[first:end], smaller, start + first, scale=0.4, window=window)
    assert torch.equal(together[first:end], alone)


@few
@given(cut=cuts(), width=st.integers(1, 40), threads=thread_counts)
def test_small_operations_row_alone_have_the_same_bits(
    cut: tuple[int, int, int], width: int, threads: int
) -> None:
    n = cut[0]
    x, weight, other = random_rows(n, 2 * width), random_rows(2 * width), random_rows(n, 2 * width)
    logits = random_rows(n, 1, seed=3)
    angles = random_rows(n + 3, width, seed=4)
    tables = RopeTables(angles.cos(), angles.sin())

    def turned(kernels: NativeKernels, part: slice) -> torch.Tensor:
        heads = x[part].clone().unsqueeze(1)
        kernels.rope(heads, 3 + part.start, tables)
        return heads

    def gated(kernels: NativeKernels, part: slice) -> torch.Tensor:
        out = other[part].clone()
        kernels.add_gated(out, x[part], logits[part])
        return out

    def routed(kernels: NativeKernels, part: slice) -> torch.Tensor:
        return kernels.route(x[part], width, is_normalised=True)[1]

    def normed(kernels: NativeKernels, part: slice) -> torch.Tensor:
        return kernels.rms_norm(x[part], weight, 1e-6)

    for compute in (turned, gated, routed, normed):
        check("portable", threads, cut, compute)
