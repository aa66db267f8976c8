"""Phi-3.5-MoE and GRIN-MoE: layer norms, biases, and a router that mixes sparsely."""

from runtime.models.base import Parts
from runtime.models.decoder import Decoder
from runtime.models.mixtral import sparse_block
from runtime.models.standard import standard_decoder


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, sparse_block)
