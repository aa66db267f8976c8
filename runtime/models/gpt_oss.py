"""gpt-oss: sinks and windows in attention, biases behind every matrix of every expert."""

from runtime.models.base import FeedForward, Parts
from runtime.models.decoder import Decoder
from runtime.models.moe import BiasMatrices, MoeBlock, Router
from runtime.models.standard import standard_decoder


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, _sparse_block)


def _sparse_block(parts: Parts, layer: int, prefix: str) -> FeedForward:
    """Return ``mlp`` with a router that has a bias, and experts that have some."""
    weights, prefix = parts.weights, f"{prefix}.mlp"
    router = Router(
        parts.kernels,
        parts.spec.routing,
        weights.matrix(f"{prefix}.router.weight"),
        bias=weights.vector(f"{prefix}.router.bias"),
    )
    biases = BiasMatrices(
        weights.matrix(f"{prefix}.experts.gate_up_proj_bias"),
        weights.matrix(f"{prefix}.experts.down_proj_bias"),
        is_interleaved=True,
    )
    return MoeBlock(parts, layer, router, biases=biases)
