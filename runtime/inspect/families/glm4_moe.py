"""GLM-4.5 checkpoints: dense layers first, a shared expert, half of each head turned."""

import dataclasses

from runtime.inspect.config import MAX_LAYERS, ConfigReader
from runtime.inspect.families.base import Family, check_sizes, read_activation, refuse_variant
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.routing import read_num_experts, read_sigmoid_routing
from runtime.inspect.families.shapes import one_by_one, shared_experts_shapes, standard_expert_name
from runtime.spec.attention import QkNorm
from runtime.spec.model import ModelSpec

_SHARE = 0.5
"""Of each head is turned where the config does not say."""


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``glm4_moe`` config."""
    frame = read_frame(reader, norm_eps=1e-5)
    has_norms = reader.boolean("use_qk_norm", default=False)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=10_000.0, rope_share=_SHARE),
        has_qkv_bias=reader.boolean("attention_bias", default=False),
        qk_norm=QkNorm.HEAD if has_norms else QkNorm.NONE,
    )
    num_dense = reader.integer("first_k_dense_replace", minimum=0, maximum=MAX_LAYERS, default=1)
    moe_layers = tuple(range(num_dense, frame["num_layers"]))
    if not moe_layers:
        refuse_variant(reader, "no experts", "experts")
    width = reader.integer("moe_intermediate_size", maximum=1 << 20)
    spec = ModelSpec(
        model_type="glm4_moe",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=moe_layers,
        num_experts=read_num_experts(reader),
        routing=read_sigmoid_routing(reader, scale=1.0, groups=(1, 1)),
        expert_width=width,
        shared_width=width * reader.integer("n_shared_experts", maximum=1 << 8, default=1),
        dense_width=reader.integer("intermediate_size", maximum=1 << 22) if num_dense else 0,
    )
    check_sizes(reader, spec)
    return spec


GLM4_MOE = Family(
    model_type="glm4_moe",
    architectures=frozenset({"Glm4MoeForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=shared_experts_shapes,
    expert_part=one_by_one(standard_expert_name),
)
