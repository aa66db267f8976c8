"""Qwen2-MoE checkpoints: biases on q, k and v, one gated shared expert beside the routed ones."""

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import (
    Family,
    Shape,
    check_sizes,
    frame_shapes,
    gated_shapes,
    read_moe_layers,
    refuse_partial_window,
)
from runtime.inspect.families.frame import read_frame
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``qwen2_moe`` config."""
    frame = read_frame(reader, rms_eps=1e-6, rope_theta=10_000.0)
    refuse_partial_window(reader)
    moe_layers = read_moe_layers(reader, frame["num_layers"])
    is_all_moe = len(moe_layers) == frame["num_layers"]
    spec = ModelSpec(
        model_type="qwen2_moe",
        **frame,
        has_qkv_bias=reader.boolean("qkv_bias", default=True),
        moe_layers=moe_layers,
        num_experts=reader.integer("num_experts", "num_local_experts", maximum=1 << 16),
        top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
        expert_width=reader.integer("moe_intermediate_size", maximum=1 << 20),
        shared_width=reader.integer("shared_expert_intermediate_size", minimum=0, maximum=1 << 22),
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
        if layer not in spec.moe_layers:
            shapes |= gated_shapes(prefix, spec.hidden_size, spec.dense_width)
            continue
        shapes[f"{prefix}.gate.weight"] = (spec.num_experts, spec.hidden_size)
        if spec.shared_width:
            shapes |= gated_shapes(f"{prefix}.shared_expert", spec.hidden_size, spec.shared_width)
            shapes[f"{prefix}.shared_expert_gate.weight"] = (1, spec.hidden_size)
    return shapes


def expert_name(expert: ExpertId, part: ExpertPart) -> str:
    """Return the published name of one matrix of a routed expert."""
    return f"model.layers.{expert.layer}.mlp.experts.{expert.expert}.{part}_proj.weight"


QWEN2_MOE = Family(
    model_type="qwen2_moe",
    architecture="Qwen2MoeForCausalLM",
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_name=expert_name,
)
