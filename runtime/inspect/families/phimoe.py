"""Phi-3.5-MoE and GRIN-MoE checkpoints: layer norms and biases, named like Mixtral's."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, check_sizes, read_activation, read_window
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.mixtral import dense_shapes, expert_name
from runtime.inspect.families.shapes import one_by_one
from runtime.spec.blocks import NormKind, Routing, Score
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``phimoe`` or ``grinmoe`` config."""
    frame = read_frame(reader, norm_eps=1e-5, norm_kind=NormKind.LAYER)
    has_bias = reader.boolean("attention_bias", default=False)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=1_000_000.0, has_bias=has_bias),
        window=read_window(reader),
    )
    spec = ModelSpec(
        model_type="phimoe",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        has_output_bias=reader.boolean("lm_head_bias", default=False),
        moe_layers=tuple(range(frame["num_layers"])),
        num_experts=reader.integer("num_local_experts", maximum=1 << 16),
        routing=Routing(
            top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
            score=Score.SPARSE_MIXER,
            jitter=reader.number("router_jitter_noise", 0.01),
        ),
        expert_width=reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


PHIMOE = Family(
    model_type="phimoe",
    aliases=("grinmoe",),
    architectures=frozenset({"PhimoeForCausalLM", "PhiMoEForCausalLM", "GRIN-MoE"}),
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_part=one_by_one(expert_name),
)
