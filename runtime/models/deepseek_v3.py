"""DeepSeek-V3, R1 and Kimi K2: latent attention, and routing by corrected sigmoids."""

from runtime.models.base import Parts
from runtime.models.decoder import Decoder
from runtime.models.standard import shared_experts_feed_forward, standard_decoder


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, shared_experts_feed_forward)
