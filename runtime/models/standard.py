"""The stack as most families name it: two norms in each layer, ``self_attn`` and ``mlp``."""

import dataclasses
from collections.abc import Callable

from runtime.models.attention import attention_block
from runtime.models.base import FeedForward, Parts
from runtime.models.decoder import Decoder, DecoderLayer, decoder_ends
from runtime.models.moe import DenseBlock, MoeBlock, Router, SharedExpert, gated_matrices
from runtime.models.norms import norm

MakeFeedForward = Callable[[Parts, int, str], FeedForward]
"""Takes the parts, the index of a layer, and how the names of its tensors begin."""


def standard_decoder(parts: Parts, make_feed_forward: MakeFeedForward) -> Decoder:
    """Return a model whose layers have a norm before each of the two blocks."""
    layers = []
    for index in range(parts.spec.num_layers):
        prefix = f"model.layers.{index}"
        layers.append(
            DecoderLayer(
                norm(parts, f"{prefix}.input_layernorm"),
                attention_block(parts, index, f"{prefix}.self_attn"),
                norm(parts, f"{prefix}.post_attention_layernorm"),
                make_feed_forward(parts, index, prefix),
                residual_scale=parts.spec.scales.residual,
                index=index,
                runner=parts.runner,
            )
        )
    return Decoder(parts.kernels, decoder_ends(parts), layers)


def standard_feed_forward(parts: Parts, layer: int, prefix: str) -> FeedForward:
    """Return ``mlp``: dense, or routed by ``gate`` and with a ``shared_expert`` if there is one."""
    return _feed_forward(parts, layer, prefix, "shared_expert")


def shared_experts_feed_forward(parts: Parts, layer: int, prefix: str) -> FeedForward:
    """Return the same for families that call the experts that always run ``shared_experts``."""
    return _feed_forward(parts, layer, prefix, "shared_experts")


def _feed_forward(parts: Parts, layer: int, prefix: str, shared: str) -> FeedForward:
    """Return ``mlp`` as ``standard_shapes`` names its tensors."""
    spec, weights = parts.spec, parts.weights
    prefix = f"{prefix}.mlp"
    if layer not in spec.moe_layers:
        return DenseBlock(parts, gated_matrices(weights, prefix))
    router = plain_router(parts, f"{prefix}.gate")
    if spec.routing.has_correction:
        correction = weights.vector(f"{prefix}.gate.e_score_correction_bias")
        router = dataclasses.replace(router, correction=correction)
    return MoeBlock(parts, layer, router, shared_expert(parts, f"{prefix}.{shared}"))


def plain_router(parts: Parts, name: str) -> Router:
    """Return the router that has a matrix alone, whose name begins with ``name``."""
    return Router(parts.kernels, parts.spec.routing, parts.weights.matrix(f"{name}.weight"))


def shared_expert(parts: Parts, name: str) -> SharedExpert | None:
    """Return the shared expert of a layer, or None where the model has none."""
    if not parts.spec.shared_width:
        return None
    gate = parts.weights.matrix(f"{name}_gate.weight") if parts.spec.has_shared_gate else None
    return SharedExpert(gated_matrices(parts.weights, name), gate)
