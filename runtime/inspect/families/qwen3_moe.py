"""Qwen3-MoE checkpoints: a norm on each head of q and k, no shared expert."""

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import (
    Family,
    Shape,
    check_sizes,
    frame_shapes,
    gated_shapes,
    read_moe_layers,
    refuse_partial_window,
    refuse_variant,
)
from runtime.inspect.families.frame import read_frame
from runtime.inspect.families.qwen2_moe import expert_name
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``qwen3_moe`` config."""
    frame = read_frame(reader, rms_eps=1e-6, rope_theta=10_000.0)
    refuse_partial_window(reader)
    if reader.boolean("attention_bias", default=False):
        refuse_variant(reader, "attention biases", "attention without biases")
    moe_layers = read_moe_layers(reader, frame["num_layers"])
    is_all_moe = len(moe_layers) == frame["num_layers"]
    spec = ModelSpec(
        model_type="qwen3_moe",
        **frame,
        has_qk_norm=True,
        moe_layers=moe_layers,
        num_experts=reader.integer("num_experts", "num_local_experts", maximum=1 << 16),
        top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
        expert_width=reader.integer("moe_intermediate_size", maximum=1 << 20),
        dense_width=0 if is_all_moe else reader.integer("intermediate_size", maximum=1 << 22),
        is_topk_normalised=reader.boolean("norm_topk_prob", default=False),
    )
    check_sizes(reader, spec)
    return spec


def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return all tensors but the routed experts."""
    shapes = frame_shapes(spec)
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}.mlp"
        if layer in spec.moe_layers:
            shapes[f"{prefix}.gate.weight"] = (spec.num_experts, spec.hidden_size)
        else:
            shapes |= gated_shapes(prefix, spec.hidden_size, spec.dense_width)
    return shapes


QWEN3_MOE = Family(
    model_type="qwen3_moe",
    architecture="Qwen3MoeForCausalLM",
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_name=expert_name,
)
