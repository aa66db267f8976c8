"""Mixtral: every layer has routed experts, none is shared; attention may look back a window."""

from runtime.kernels.base import Kernels, RopeTables
from runtime.models.attention import Attention
from runtime.models.base import DenseWeights, ExpertSource
from runtime.models.decoder import Decoder, DecoderLayer, decoder_ends
from runtime.models.moe import MoeBlock, Routing
from runtime.spec.model import ModelSpec

MODEL_TYPE = "mixtral"


def build(
    spec: ModelSpec,
    kernels: Kernels,
    rope: RopeTables,
    weights: DenseWeights,
    experts: ExpertSource,
) -> Decoder:
    """Return the model over weights that are in memory."""
    routing = Routing(spec.top_k, spec.is_topk_normalised)
    layers = []
    for index in range(spec.num_layers):
        prefix = f"model.layers.{index}"
        router = weights.matrix(f"{prefix}.block_sparse_moe.gate.weight")
        layers.append(
            DecoderLayer(
                weights.vector(f"{prefix}.input_layernorm.weight"),
                Attention(kernels, spec, rope, weights, f"{prefix}.self_attn"),
                weights.vector(f"{prefix}.post_attention_layernorm.weight"),
                MoeBlock(kernels, index, router, routing, experts),
            )
        )
    return Decoder(kernels, spec.rms_eps, decoder_ends(spec, weights), layers)
