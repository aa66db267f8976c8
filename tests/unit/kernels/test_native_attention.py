"""An attention block in one call: the bits of its steps, and what it refuses."""

import dataclasses
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from runtime.kernels.base import RopeTables
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.kernels.native import NativeKernels
from runtime.kernels.native_attention import (
    AttentionWeights,
    NativeAttention,
    native_attention,
)
from runtime.kernels.reference import ReferenceKernels
from runtime.protocol.values import WeightFormat
from tests.support.kernel_inputs import (
    native_kernels,
    random_matrix,
    random_pages,
    random_rows,
    usable_instruction_sets,
)

HIDDEN, NUM_POSITIONS = 40, 64


def weights_of(
    kv_heads: int, group: int, head_dim: int, formats: tuple[WeightFormat, ...], *, is_rich: bool
) -> AttentionWeights:
    """A block; a rich one has biases, norms, sinks, a window and a turn of some channels."""
    heads = kv_heads * group
    sizes = (heads, kv_heads, kv_heads)
    inputs: list[tuple[Matrix, torch.Tensor | None]] = [
        (
            random_matrix(weight_format, count * head_dim, HIDDEN, seed),
            random_rows(count * head_dim, seed=seed) if is_rich else None,
        )
        for seed, (count, weight_format) in enumerate(zip(sizes, formats, strict=False))
    ]
    angles = random_rows(NUM_POSITIONS, head_dim // 2, seed=7)
    return AttentionWeights(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        q=inputs[0],
        k=inputs[1],
        v=inputs[2],
        o=(random_matrix(formats[3], HIDDEN, heads * head_dim, 4), None),
        q_norm=random_rows(head_dim, seed=5) if is_rich else None,
        k_norm=random_rows(head_dim, seed=6) if is_rich else None,
        eps=1e-6,
        rope=RopeTables(angles.cos(), angles.sin()) if is_rich else None,
        scale=0.3,
        window=9 if is_rich else 0,
        sinks=random_rows(heads, seed=8) if is_rich else None,
    )


def step_by_step(
    kernels: NativeKernels, weights: AttentionWeights, x: torch.Tensor, start: int, pages: KvPages
) -> torch.Tensor:
    """The same block by single calls."""
    q, k, v = (
        kernels.linear(x, matrix, bias).view(len(x), -1, weights.head_dim)
        for matrix, bias in (weights.q, weights.k, weights.v)
    )
    if weights.q_norm is not None and weights.k_norm is not None:
        q = kernels.rms_norm(q, weights.q_norm, weights.eps)
        k = kernels.rms_norm(k, weights.k_norm, weights.eps)
    if weights.rope is not None:
        kernels.rope(q, start, weights.rope)
        kernels.rope(k, start, weights.rope)
    kernels.store_kv(pages, start, k, v)
    mixed = kernels.attention(
        q, pages, start, scale=weights.scale, window=weights.window, sinks=weights.sinks
    )
    return kernels.linear(mixed, *weights.o)


@pytest.mark.parametrize("instruction_set", usable_instruction_sets())
@settings(max_examples=25)
@given(
    n=st.integers(1, 20),
    start=st.integers(0, 30),
    heads=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(2, 20)),
    formats=st.tuples(*(st.sampled_from(list(WeightFormat)) for _ in range(4))),
    is_rich=st.booleans(),
    threads=st.integers(1, 3),
)
def test_block_in_one_call_gives_the_bits_of_its_steps(
    instruction_set: str,
    n: int,
    start: int,
    heads: tuple[int, int, int],
    formats: tuple[WeightFormat, ...],
    is_rich: bool,
    threads: int,
) -> None:
    weights = weights_of(*heads, formats, is_rich=is_rich)
    pages, twin = (random_pages(start + n, 7, heads[0], heads[2]) for _ in range(2))
    x = random_rows(n, HIDDEN, seed=9)
    with native_kernels(instruction_set, threads) as kernels:
        block = native_attention(kernels, weights)
        assert block is not None
        found = block(x, start, pages)
        expected = step_by_step(kernels, weights, x, start, twin)
    assert torch.equal(found, expected)
    stored, same = torch.cat(pages.keys)[: start + n], torch.cat(twin.keys)[: start + n]
    assert torch.equal(stored, same)


def plain_block(**changes: Any) -> tuple[NativeAttention, AttentionWeights]:
    weights = weights_of(2, 2, 8, (WeightFormat.F32,) * 4, is_rich=True)
    with native_kernels("portable") as kernels:
        block = native_attention(kernels, dataclasses.replace(weights, **changes))
    assert block is not None
    return block, weights


def test_block_other_kernels_and_turns_are_left_to_single_calls() -> None:
    _, weights = plain_block()
    assert native_attention(ReferenceKernels(), weights) is None
    assert weights.rope is not None
    turned = dataclasses.replace(weights.rope, is_interleaved=True)
    with native_kernels("portable") as kernels:
        assert native_attention(kernels, dataclasses.replace(weights, rope=turned)) is None


def test_block_positions_and_shapes_it_lacks_are_refused() -> None:
    block, weights = plain_block()
    pages, x = random_pages(80, 8, 2, 8), random_rows(2, HIDDEN)
    with pytest.raises(ValueError, match="outside the tables"):
        block(x, NUM_POSITIONS - 1, pages)
    with pytest.raises(ValueError, match="outside the tables"):
        block(x, -1, pages)
    with pytest.raises(ValueError, match="beyond the pages"):
        block(x, 7, random_pages(8, 8, 2, 8))
    with pytest.raises(ValueError, match="in the pages"):
        plain_block()[0](x, 0, random_pages(8, 8, 1, 8))
    with pytest.raises(ValueError, match="columns"):
        block(random_rows(2, HIDDEN + 1), 0, pages)
    for name, value in (
        ("q_norm", torch.ones(7)),
        ("sinks", torch.ones(3)),
        ("q", (weights.q[0], torch.ones(5))),
        ("k", (random_matrix(WeightFormat.F32, 9, HIDDEN), None)),
        ("num_kv_heads", 3),
    ):
        with pytest.raises(ValueError, match=r"channels|sinks|biases|shape|heads"):
            plain_block(**{name: value})[0](x, 0, pages)
