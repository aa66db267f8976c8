"""MiniMax-M2: sigmoids choose experts with a correction that lies beside the router."""

from runtime.models.base import FeedForward, Parts
from runtime.models.decoder import Decoder
from runtime.models.moe import MoeBlock, Router
from runtime.models.standard import standard_decoder


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, _sparse_block)


def _sparse_block(parts: Parts, layer: int, prefix: str) -> FeedForward:
    """Return ``block_sparse_moe``."""
    weights, prefix = parts.weights, f"{prefix}.block_sparse_moe"
    router = Router(
        parts.kernels,
        parts.spec.routing,
        weights.matrix(f"{prefix}.gate.weight"),
        correction=weights.vector(f"{prefix}.e_score_correction_bias"),
    )
    return MoeBlock(parts, layer, router)
