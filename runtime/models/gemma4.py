"""Gemma 4: norms before and after each block, a dense block and routed experts side by side."""

import dataclasses
from collections.abc import Sequence

import torch

from runtime.kernels.kv import KvPages
from runtime.models.attention import attention_block
from runtime.models.base import AttentionBlock, FixedRunner, Parts
from runtime.models.decoder import Decoder, decoder_ends
from runtime.models.moe import DenseBlock, MoeBlock, Router, gated_matrices
from runtime.models.norms import Norm, norm


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    layers = [_layer(parts, index) for index in range(parts.spec.num_layers)]
    return Decoder(parts.kernels, decoder_ends(parts), layers)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Experts:
    """The routed experts of a layer, with norms before the router, before them and after them."""

    router_norm: Norm
    router: Router
    norm: Norm
    block: MoeBlock
    after_norm: Norm
    after_dense_norm: Norm
    """Of what the dense block beside them gives."""

    def fixed(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return ids and weights of the experts that rows of the stream choose, and their input."""
        ids, weights = self.router(self.router_norm(x))
        return ids, weights, self.norm(x)

    def rest(
        self, dense: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, rows: torch.Tensor
    ) -> torch.Tensor:
        """Return what both blocks give together."""
        routed = self.block.routed(rows, ids, weights)
        return self.after_dense_norm(dense) + self.after_norm(routed)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Gemma4Layer:
    """One layer; in the end the whole stream is multiplied with a stored number."""

    attention_norm: Norm
    attention: AttentionBlock
    after_attention_norm: Norm
    feed_forward_norm: Norm
    dense: DenseBlock
    experts: Experts | None
    after_feed_forward_norm: Norm
    scalar: torch.Tensor
    index: int
    runner: FixedRunner | None = None

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the stream after this layer, which may be ``x`` itself."""
        done = None
        if self.runner is not None:
            done = self.runner.run(self.index, self.fixed, x, start_position, pages)
        x, (given, *chosen) = done or (x, self.fixed(x, start_position, pages))
        if self.experts is not None:
            given = self.experts.rest(given, *chosen)
        x += self.after_feed_forward_norm(given)
        x *= self.scalar
        return x

    def fixed(self, x: torch.Tensor, start_position: int, pages: KvPages) -> Sequence[torch.Tensor]:
        """Compute up to the choice of experts; return the dense block's output and the choice."""
        given = self.attention(self.attention_norm(x), start_position, pages)
        x += self.after_attention_norm(given)
        given = self.dense(self.feed_forward_norm(x))
        return (given,) if self.experts is None else (given, *self.experts.fixed(x))


def _layer(parts: Parts, index: int) -> Gemma4Layer:
    prefix = f"model.layers.{index}"
    return Gemma4Layer(
        norm(parts, f"{prefix}.input_layernorm"),
        attention_block(parts, index, f"{prefix}.self_attn"),
        norm(parts, f"{prefix}.post_attention_layernorm"),
        norm(parts, f"{prefix}.pre_feedforward_layernorm"),
        DenseBlock(parts, gated_matrices(parts.weights, f"{prefix}.mlp")),
        _experts(parts, index, prefix) if parts.spec.num_experts else None,
        norm(parts, f"{prefix}.post_feedforward_layernorm"),
        parts.weights.vector(f"{prefix}.layer_scalar"),
        index,
        parts.runner,
    )


def _experts(parts: Parts, index: int, prefix: str) -> Experts:
    spec, weights, kernels = parts.spec, parts.weights, parts.kernels
    scale = weights.vector(f"{prefix}.router.scale") * spec.hidden_size**-0.5
    router = Router(
        kernels,
        spec.routing,
        weights.matrix(f"{prefix}.router.proj.weight"),
        expert_scales=weights.vector(f"{prefix}.router.per_expert_scale"),
    )
    return Experts(
        lambda x: kernels.rms_norm(x, scale, spec.norm.eps),
        router,
        norm(parts, f"{prefix}.pre_feedforward_layernorm_2"),
        MoeBlock(parts, index, router),
        norm(parts, f"{prefix}.post_feedforward_layernorm_2"),
        norm(parts, f"{prefix}.post_feedforward_layernorm_1"),
    )
