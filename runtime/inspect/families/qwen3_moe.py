"""Qwen3-MoE checkpoints: a norm on each head of q and k, no shared expert."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import (
    Family,
    check_sizes,
    read_activation,
    read_moe_layers,
    refuse_partial_window,
    refuse_variant,
)
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.routing import read_routing
from runtime.inspect.families.shapes import one_by_one, standard_expert_name, standard_shapes
from runtime.spec.attention import QkNorm
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader, *, rope_theta: float = 10_000.0) -> ModelSpec:
    """Return the spec of a ``qwen3_moe`` config; ``rope_theta`` is the default."""
    frame = read_frame(reader, norm_eps=1e-6)
    refuse_partial_window(reader)
    if reader.boolean("attention_bias", default=False):
        refuse_variant(reader, "attention biases", "attention without biases")
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=rope_theta), qk_norm=QkNorm.HEAD
    )
    moe_layers = read_moe_layers(reader, frame["num_layers"])
    is_all_moe = len(moe_layers) == frame["num_layers"]
    spec = ModelSpec(
        model_type="qwen3_moe",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=moe_layers,
        num_experts=reader.integer("num_experts", "num_local_experts", maximum=1 << 16),
        routing=read_routing(reader),
        expert_width=reader.integer("moe_intermediate_size", maximum=1 << 20),
        dense_width=0 if is_all_moe else reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


QWEN3_MOE = Family(
    model_type="qwen3_moe",
    architectures=frozenset({"Qwen3MoeForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=standard_shapes,
    expert_part=one_by_one(standard_expert_name),
)
