"""Qwen2-MoE: biased queries, keys and values; a shared expert beside the routed ones."""

from runtime.models.base import Parts
from runtime.models.decoder import Decoder
from runtime.models.standard import standard_decoder, standard_feed_forward


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, standard_feed_forward)
