"""ERNIE 4.5: shares of a softmax choose experts with a correction; shared experts run as one."""

import torch

from runtime.models.base import FeedForward, Parts
from runtime.models.decoder import Decoder
from runtime.models.moe import DenseBlock, MoeBlock, Router, gated_matrices
from runtime.models.standard import shared_expert, standard_decoder


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, _feed_forward)


def _feed_forward(parts: Parts, layer: int, prefix: str) -> FeedForward:
    """Return ``mlp``: dense, or routed with a correction that is a matrix of one row."""
    spec, weights, kernels = parts.spec, parts.weights, parts.kernels
    prefix = f"{prefix}.mlp"
    if layer not in spec.moe_layers:
        return DenseBlock(parts, gated_matrices(weights, prefix))
    statics = weights.matrix(f"{prefix}.moe_statics.e_score_correction_bias")
    router = Router(
        kernels,
        spec.routing,
        weights.matrix(f"{prefix}.gate.weight"),
        correction=kernels.embed(statics, torch.zeros(1, dtype=torch.int64))[0],
    )
    return MoeBlock(parts, layer, router, shared_expert(parts, f"{prefix}.shared_experts"))
