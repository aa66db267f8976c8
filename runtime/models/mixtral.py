"""Mixtral: every layer has routed experts, none is shared; attention may look back a window."""

from runtime.models.base import FeedForward, Parts
from runtime.models.decoder import Decoder
from runtime.models.moe import MoeBlock
from runtime.models.standard import plain_router, standard_decoder


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, sparse_block)


def sparse_block(parts: Parts, layer: int, prefix: str) -> FeedForward:
    """Return ``block_sparse_moe`` with a router named ``gate``."""
    return MoeBlock(parts, layer, plain_router(parts, f"{prefix}.block_sparse_moe.gate"))
