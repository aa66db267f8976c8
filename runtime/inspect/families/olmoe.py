"""OLMoE checkpoints: one norm over all heads of q and one over all of k, every layer routed."""

import dataclasses

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import Family, check_sizes, read_activation, refuse_variant
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.routing import read_routing
from runtime.inspect.families.shapes import one_by_one, standard_expert_name, standard_shapes
from runtime.spec.attention import QkNorm
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of an ``olmoe`` config."""
    frame = read_frame(reader, norm_eps=1e-5)
    clip = reader["clip_qkv"]
    if clip is not None:
        refuse_variant(reader, f"clip_qkv {spelled(clip)}", "queries, keys and values as they are")
    has_bias = reader.boolean("attention_bias", default=False)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=10_000.0, has_bias=has_bias),
        qk_norm=QkNorm.WHOLE,
    )
    spec = ModelSpec(
        model_type="olmoe",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=tuple(range(frame["num_layers"])),
        num_experts=reader.integer("num_experts", maximum=1 << 16),
        routing=read_routing(reader),
        expert_width=reader.integer("intermediate_size", maximum=1 << 20),
    )
    check_sizes(reader, spec)
    return spec


OLMOE = Family(
    model_type="olmoe",
    architectures=frozenset({"OlmoeForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=standard_shapes,
    expert_part=one_by_one(standard_expert_name),
)
