"""Qwen3-MoE: a norm on each head's queries and keys; some layers may be dense."""

from runtime.kernels.base import Kernels, RopeTables
from runtime.models.attention import Attention
from runtime.models.base import DenseWeights, ExpertSource
from runtime.models.decoder import Decoder, DecoderLayer, decoder_ends
from runtime.models.moe import DenseBlock, MoeBlock, Routing, gated_matrices
from runtime.spec.model import ModelSpec

MODEL_TYPE = "qwen3_moe"


def build(
    spec: ModelSpec,
    kernels: Kernels,
    rope: RopeTables,
    weights: DenseWeights,
    experts: ExpertSource,
) -> Decoder:
    """Return the model over weights that are in memory."""
    moe_layers = frozenset(spec.moe_layers)
    routing = Routing(spec.top_k, spec.is_topk_normalised)
    layers = []
    for index in range(spec.num_layers):
        prefix = f"model.layers.{index}"
        feed_forward: DenseBlock | MoeBlock
        if index in moe_layers:
            router = weights.matrix(f"{prefix}.mlp.gate.weight")
            feed_forward = MoeBlock(kernels, index, router, routing, experts)
        else:
            feed_forward = DenseBlock(kernels, gated_matrices(weights, f"{prefix}.mlp"))
        layers.append(
            DecoderLayer(
                weights.vector(f"{prefix}.input_layernorm.weight"),
                Attention(kernels, spec, rope, weights, f"{prefix}.self_attn"),
                weights.vector(f"{prefix}.post_attention_layernorm.weight"),
                feed_forward,
            )
        )
    return Decoder(kernels, spec.rms_eps, decoder_ends(spec, weights), layers)
