"""Qwen2-MoE checkpoints: biases on q, k and v, one gated shared expert beside the routed ones."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import (
    Family,
    check_sizes,
    read_activation,
    read_moe_layers,
    refuse_partial_window,
)
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.routing import read_routing
from runtime.inspect.families.shapes import one_by_one, standard_expert_name, standard_shapes
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``qwen2_moe`` config."""
    frame = read_frame(reader, norm_eps=1e-6)
    refuse_partial_window(reader)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=10_000.0),
        has_qkv_bias=reader.boolean("qkv_bias", default=True),
    )
    moe_layers = read_moe_layers(reader, frame["num_layers"])
    is_all_moe = len(moe_layers) == frame["num_layers"]
    shared = reader.integer("shared_expert_intermediate_size", minimum=0, maximum=1 << 22)
    spec = ModelSpec(
        model_type="qwen2_moe",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=moe_layers,
        num_experts=reader.integer("num_experts", "num_local_experts", maximum=1 << 16),
        routing=read_routing(reader),
        expert_width=reader.integer("moe_intermediate_size", maximum=1 << 20),
        shared_width=shared,
        has_shared_gate=shared > 0,
        dense_width=0 if is_all_moe else reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


QWEN2_MOE = Family(
    model_type="qwen2_moe",
    architectures=frozenset({"Qwen2MoeForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=standard_shapes,
    expert_part=one_by_one(standard_expert_name),
)
