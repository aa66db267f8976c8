"""The attention block that the families share, with its options."""

import dataclasses

import torch

from runtime.kernels.base import Kernels, RopeTables
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.models.base import DenseWeights
from runtime.spec.model import ModelSpec


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """One matrix with its bias, where it has one."""

    matrix: Matrix
    bias: torch.Tensor | None


def projection(weights: DenseWeights, name: str, *, has_bias: bool) -> Projection:
    """Return the projection whose tensors begin with ``name``."""
    bias = weights.vector(f"{name}.bias") if has_bias else None
    return Projection(weights.matrix(f"{name}.weight"), bias)


class Attention:
    """Causal attention with grouped heads and rotary positions over the KV pages of one layer.

    Queries and keys get biases (qwen2) or a norm per head (qwen3) where the spec says so.
    """

    def __init__(
        self,
        kernels: Kernels,
        spec: ModelSpec,
        rope: RopeTables,
        weights: DenseWeights,
        prefix: str,
    ) -> None:
        self._kernels = kernels
        self._rope = rope
        self._head_dim = spec.head_dim
        self._num_heads = spec.num_heads
        self._num_kv_heads = spec.num_kv_heads
        self._scale = spec.head_dim**-0.5
        self._window = spec.sliding_window
        self._eps = spec.rms_eps
        self._q = projection(weights, f"{prefix}.q_proj", has_bias=spec.has_qkv_bias)
        self._k = projection(weights, f"{prefix}.k_proj", has_bias=spec.has_qkv_bias)
        self._v = projection(weights, f"{prefix}.v_proj", has_bias=spec.has_qkv_bias)
        self._o = weights.matrix(f"{prefix}.o_proj.weight")
        self._q_norm = weights.vector(f"{prefix}.q_norm.weight") if spec.has_qk_norm else None
        self._k_norm = weights.vector(f"{prefix}.k_norm.weight") if spec.has_qk_norm else None

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the block's output for rows ``x`` at positions from ``start_position`` on.

        The rows' keys and values are written to the pages first; the pages must have room.
        """
        kernels = self._kernels
        n = x.shape[0]
        q = kernels.linear(x, self._q.matrix, self._q.bias).view(n, self._num_heads, self._head_dim)
        kv_shape = (n, self._num_kv_heads, self._head_dim)
        k = kernels.linear(x, self._k.matrix, self._k.bias).view(kv_shape)
        v = kernels.linear(x, self._v.matrix, self._v.bias).view(kv_shape)
        if self._q_norm is not None and self._k_norm is not None:
            q = kernels.rms_norm(q, self._q_norm, self._eps)
            k = kernels.rms_norm(k, self._k_norm, self._eps)
        kernels.rope(q, start_position, self._rope)
        kernels.rope(k, start_position, self._rope)
        kernels.store_kv(pages, start_position, k, v)
        mixed = kernels.attention(q, pages, start_position, scale=self._scale, window=self._window)
        return kernels.linear(mixed, self._o)


def rope_tables(head_dim: int, theta: float, num_positions: int) -> RopeTables:
    """Return the rotary tables of all channels of a head for positions from 0 on."""
    channels = torch.arange(0, head_dim, 2, dtype=torch.int64).to(torch.float32)
    frequencies = 1.0 / (theta ** (channels / head_dim))
    positions = torch.arange(num_positions, dtype=torch.float32)
    angles = torch.outer(positions, frequencies)
    return RopeTables(angles.cos(), angles.sin())
