"""Qwen2-MoE: biased queries, keys and values; a shared expert beside the routed ones."""

from runtime.kernels.base import Kernels, RopeTables
from runtime.models.attention import Attention
from runtime.models.base import DenseWeights, ExpertSource
from runtime.models.decoder import Decoder, DecoderLayer, decoder_ends
from runtime.models.moe import (
    DenseBlock,
    MoeBlock,
    Routing,
    SharedExpert,
    gated_matrices,
)
from runtime.spec.model import ModelSpec

MODEL_TYPE = "qwen2_moe"


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
            feed_forward = MoeBlock(
                kernels,
                index,
                weights.matrix(f"{prefix}.mlp.gate.weight"),
                routing,
                experts,
                _shared_expert(spec, weights, f"{prefix}.mlp"),
            )
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


def _shared_expert(spec: ModelSpec, weights: DenseWeights, prefix: str) -> SharedExpert | None:
    """Return the shared expert of a layer, or None where the model has none."""
    if not spec.shared_width:
        return None
    return SharedExpert(
        gated_matrices(weights, f"{prefix}.shared_expert"),
        weights.matrix(f"{prefix}.shared_expert_gate.weight"),
    )
