"""The attention blocks that the families share, with their options."""

import dataclasses

import torch

from runtime.kernels.base import HeadRows
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.kernels.native_attention import (
    AttentionWeights,
    NativeAttention,
    native_attention,
)
from runtime.models.base import AttentionBlock, DenseWeights, Parts
from runtime.spec.attention import AttentionSpec, LatentAttentionSpec, QkNorm


def attention_block(parts: Parts, layer: int, prefix: str) -> AttentionBlock:
    """Return the attention of a layer whose tensors begin with ``prefix``."""
    spec = parts.spec.attention[layer]
    if isinstance(spec, LatentAttentionSpec):
        return LatentAttention(parts, spec, prefix)
    return Attention(parts, spec, prefix)


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
    """Causal attention with grouped heads over the KV pages of one layer."""

    def __init__(self, parts: Parts, spec: AttentionSpec, prefix: str) -> None:
        weights, has_bias = parts.weights, spec.has_qkv_bias
        self._kernels = parts.kernels
        self._spec = spec
        self._rope = None if spec.rope is None else parts.ropes[spec.rope]
        self._eps = parts.spec.norm.eps
        self._q = projection(weights, f"{prefix}.q_proj", has_bias=has_bias)
        self._k = projection(weights, f"{prefix}.k_proj", has_bias=has_bias)
        self._v = (
            projection(weights, f"{prefix}.v_proj", has_bias=has_bias)
            if spec.has_value_matrix
            else None
        )
        self._o = projection(weights, f"{prefix}.o_proj", has_bias=spec.has_output_bias)
        has_norm = spec.qk_norm is not QkNorm.NONE
        self._q_norm = weights.vector(f"{prefix}.q_norm.weight") if has_norm else None
        self._k_norm = weights.vector(f"{prefix}.k_norm.weight") if has_norm else None
        self._sinks = weights.vector(f"{prefix}.sinks") if spec.has_sinks else None
        device = torch.as_tensor(self._k.matrix.data).device
        self._ones = torch.ones(spec.head_dim, device=device) if spec.has_value_norm else None
        self._whole = self._in_one_call(spec)

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the block's output for rows ``x`` at positions from ``start_position`` on.

        The rows' keys and values are written to the pages first; the pages must have room.
        """
        if self._whole is not None:
            return self._whole(x, start_position, pages)
        kernels, spec = self._kernels, self._spec
        q = self._normalised(self._projected(x, self._q), self._q_norm)
        keys = self._projected(x, self._k)
        k = self._normalised(keys, self._k_norm)
        # Keys are turned in place where they are not normalised.
        v = keys.clone() if self._v is None else self._projected(x, self._v)
        if self._ones is not None:
            v = kernels.rms_norm(v, self._ones, self._eps)
        if self._rope is not None:
            kernels.rope(q, start_position, self._rope)
            kernels.rope(k, start_position, self._rope)
        kernels.store_kv(pages, start_position, k, v)
        mixed = kernels.attention(
            q,
            pages,
            start_position,
            scale=spec.score_scale,
            window=spec.window,
            sinks=self._sinks,
        )
        return kernels.linear(mixed, self._o.matrix, self._o.bias)

    def _in_one_call(self, spec: AttentionSpec) -> NativeAttention | None:
        """Return the block for kernels that compute it as a whole, None for other blocks."""
        if self._v is None or self._ones is not None or spec.qk_norm is QkNorm.WHOLE:
            return None
        weights = AttentionWeights(
            num_heads=spec.num_heads,
            num_kv_heads=spec.num_kv_heads,
            head_dim=spec.head_dim,
            q=(self._q.matrix, self._q.bias),
            k=(self._k.matrix, self._k.bias),
            v=(self._v.matrix, self._v.bias),
            o=(self._o.matrix, self._o.bias),
            q_norm=self._q_norm,
            k_norm=self._k_norm,
            eps=self._eps,
            rope=self._rope,
            scale=spec.score_scale,
            window=spec.window,
            sinks=self._sinks,
        )
        return native_attention(self._kernels, weights)

    def _projected(self, x: torch.Tensor, own: Projection) -> torch.Tensor:
        """Return ``[n, heads, head_dim]`` of a projection."""
        flat = self._kernels.linear(x, own.matrix, own.bias)
        return flat.view(len(x), -1, self._spec.head_dim)

    def _normalised(self, heads: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        """Return heads normalised, each for itself or all together; as they are without weights."""
        if weight is None:
            return heads
        if self._spec.qk_norm is QkNorm.HEAD:
            return self._kernels.rms_norm(heads, weight, self._eps)
        return self._kernels.rms_norm(heads.flatten(1), weight, self._eps).view(heads.shape)


class LatentAttention:
    """Causal attention over latent rows, of which keys and values of all heads are made.

    A page holds, for each position, the normalised latent row and the turned part of the key::

        | latent_dim ................ | rope_dim |
          weighs as key and as value    key alone

    Instead of expanding the keys of every position, each head's query is taken through the
    transposed matrix of its keys, and what it mixes of latent rows through that of its values.
    """

    def __init__(self, parts: Parts, spec: LatentAttentionSpec, prefix: str) -> None:
        weights, has_bias = parts.weights, spec.has_bias
        self._kernels = parts.kernels
        self._spec = spec
        self._rope = parts.ropes[spec.rope]
        self._has_latent_query = spec.query_dim > 0
        if self._has_latent_query:
            self._q_down = projection(weights, f"{prefix}.q_a_proj", has_bias=has_bias)
            self._q_norm = weights.vector(f"{prefix}.q_a_layernorm.weight")
            self._q = weights.matrix(f"{prefix}.q_b_proj.weight")
        else:
            self._q = weights.matrix(f"{prefix}.q_proj.weight")
        self._kv_down = projection(weights, f"{prefix}.kv_a_proj_with_mqa", has_bias=has_bias)
        self._kv_norm = weights.vector(f"{prefix}.kv_a_layernorm.weight")
        self._kv = weights.matrix(f"{prefix}.kv_b_proj.weight")
        self._o = projection(weights, f"{prefix}.o_proj", has_bias=has_bias)
        end = spec.plain_dim + spec.value_dim
        self._key_rows = HeadRows(0, spec.plain_dim, is_transposed=True)
        self._value_rows = HeadRows(spec.plain_dim, end, is_transposed=False)

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the block's output for rows ``x`` at positions from ``start_position`` on.

        The latent rows are written to the pages first; the pages must have room.
        """
        kernels, spec = self._kernels, self._spec
        row = self._latent(x, start_position)
        kernels.store_kv(pages, start_position, row, row)
        plain, turned = self._queries(x, start_position)
        reach = kernels.heads_linear(plain, self._kv, self._key_rows)
        query = torch.cat([reach, turned], dim=-1)
        mixed = kernels.attention(query, pages, start_position, scale=spec.scale)
        latent = mixed.view(len(x), spec.num_heads, -1)[..., : spec.latent_dim].contiguous()
        values = kernels.heads_linear(latent, self._kv, self._value_rows)
        return kernels.linear(values.flatten(1), self._o.matrix, self._o.bias)

    def _latent(self, x: torch.Tensor, start_position: int) -> torch.Tensor:
        """Return what is kept of each row: ``[n, 1, latent_dim + rope_dim]``."""
        kernels, spec = self._kernels, self._spec
        both = kernels.linear(x, self._kv_down.matrix, self._kv_down.bias)
        latent = both[:, : spec.latent_dim].contiguous()
        latent = kernels.rms_norm(latent, self._kv_norm, spec.norm_eps)
        key = both[:, spec.latent_dim :].contiguous().unsqueeze(1)
        kernels.rope(key, start_position, self._rope)
        return torch.cat([latent.unsqueeze(1), key], dim=-1)

    def _queries(self, x: torch.Tensor, start_position: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the plain and the turned part of each head's query."""
        kernels, spec = self._kernels, self._spec
        source = x
        if self._has_latent_query:
            source = kernels.linear(x, self._q_down.matrix, self._q_down.bias)
            source = kernels.rms_norm(source, self._q_norm, spec.norm_eps)
        heads = kernels.linear(source, self._q).view(len(x), spec.num_heads, -1)
        turned = heads[..., spec.plain_dim :].contiguous()
        kernels.rope(turned, start_position, self._rope)
        return heads[..., : spec.plain_dim].contiguous(), turned
