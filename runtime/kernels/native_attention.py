"""A whole attention block in one call of the extension, instead of ten from Python."""

import dataclasses

import torch

from runtime.kernels.base import Kernels, RopeTables
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.kernels.native import NativeKernels
from runtime.kernels.native_arguments import address_of
from runtime.native.formats import FORMAT_CODES
from runtime.native.loader import MatrixNumbers, NativeBlock, NativeModule

Projected = tuple[Matrix, torch.Tensor | None]
"""A matrix and the bias behind it."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttentionWeights:
    """What one attention block consists of: grouped heads, each perhaps normalised and turned."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    q: Projected
    k: Projected
    v: Projected
    o: Projected
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    eps: float
    rope: RopeTables | None
    scale: float
    window: int
    sinks: torch.Tensor | None


class NativeAttention:
    """An attention block whose steps follow one another in native code.

    They are the steps of ``NativeKernels``, so that its bits are those of single calls.

    Threads: one caller at a time.
    """

    def __init__(self, module: NativeModule, weights: AttentionWeights) -> None:
        self._module = module
        self._weights = weights
        self._hidden = weights.q[0].columns
        self._blocks: dict[int, NativeBlock] = {}

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the block's output for rows ``x``; keys and values go to the pages first."""
        n, columns = x.shape
        if columns != self._hidden:
            raise ValueError(f"{columns} columns for a block of {self._hidden}")
        block = self._blocks.get(pages.page_tokens)
        if block is None:
            block = self._blocks[pages.page_tokens] = self._made(pages)
        out = torch.empty(n, self._hidden)
        block.run(
            address_of(x),
            n,
            pages.key_addresses,
            pages.value_addresses,
            start_position,
            out.data_ptr(),
        )
        return out

    def _made(self, pages: KvPages) -> NativeBlock:
        weights, rope = self._weights, self._weights.rope
        if (pages.num_kv_heads, pages.head_dim) != (weights.num_kv_heads, weights.head_dim):
            raise ValueError(f"{pages.num_kv_heads} heads of {pages.head_dim} in the pages")
        if weights.sinks is not None and weights.sinks.shape != (weights.num_heads,):
            raise ValueError(f"{weights.sinks.shape} sinks for {weights.num_heads} heads")
        tables = (0, 0, 0, 0)
        if rope is not None:
            num_positions, num_angles = rope.cosines.shape
            places = (address_of(rope.cosines), address_of(rope.sines))
            tables = (*places, num_positions, num_angles)
        q, k, v, o = (_numbers_of(each) for each in (weights.q, weights.k, weights.v, weights.o))
        return self._module.attention_block(
            self._hidden,
            (weights.num_heads, weights.num_kv_heads, weights.head_dim, pages.page_tokens),
            q,
            k,
            v,
            o,
            (self._norm(weights.q_norm), self._norm(weights.k_norm), weights.eps),
            tables,
            weights.scale,
            weights.window,
            0 if weights.sinks is None else address_of(weights.sinks),
        )

    def _norm(self, weight: torch.Tensor | None) -> int:
        if weight is None:
            return 0
        if weight.shape != (self._weights.head_dim,):
            raise ValueError(f"{weight.shape} weights for {self._weights.head_dim} channels")
        return address_of(weight)


def native_attention(kernels: Kernels, weights: AttentionWeights) -> NativeAttention | None:
    """Return the block for native kernels, None where steps have to be called one by one."""
    rope = weights.rope
    if not isinstance(kernels, NativeKernels) or (rope is not None and rope.is_interleaved):
        return None
    return NativeAttention(kernels.module, weights)


def _numbers_of(projected: Projected) -> MatrixNumbers:
    matrix, bias = projected
    if bias is not None and bias.shape != (matrix.rows,):
        raise ValueError(f"{bias.shape} biases for {matrix.rows} rows")
    place = 0 if bias is None else address_of(bias)
    return (matrix.address, FORMAT_CODES[matrix.format], matrix.rows, matrix.columns, place)
