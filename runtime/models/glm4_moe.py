"""GLM-4.5: half of each head is turned, and routing is by corrected sigmoids."""

from runtime.models.base import Parts
from runtime.models.decoder import Decoder
from runtime.models.standard import shared_experts_feed_forward, standard_decoder


def build(parts: Parts) -> Decoder:
    """Return the model over weights that are in memory."""
    return standard_decoder(parts, shared_experts_feed_forward)
