"""Granite MoE checkpoints: experts stacked in two tensors a layer, constants in the config."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, Shape, check_sizes, read_activation
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.shapes import frame_shapes, stacked
from runtime.spec.blocks import Routing, Scales
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertPart

_BLOCK = "block_sparse_moe"


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``granitemoe`` config."""
    frame = read_frame(reader, norm_eps=1e-6)
    has_bias = reader.boolean("attention_bias", default=False)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=10_000.0, has_bias=has_bias),
        scale=reader.number("attention_multiplier", 1.0),
    )
    spec = ModelSpec(
        model_type="granitemoe",
        **frame,
        attention=(attention,) * frame["num_layers"],
        scales=Scales(
            embedding=reader.number("embedding_multiplier", 1.0),
            residual=reader.number("residual_multiplier", 1.0),
            logits=1 / reader.number("logits_scaling", 1.0),
        ),
        activation=read_activation(reader, "hidden_act", "activation_function"),
        moe_layers=tuple(range(frame["num_layers"])),
        num_experts=reader.integer("num_local_experts", maximum=1 << 16),
        # The softmax of the chosen logits is the normalised softmax of all.
        routing=Routing(
            top_k=reader.integer("num_experts_per_tok", maximum=1 << 16), is_normalised=True
        ),
        expert_width=reader.integer("intermediate_size", maximum=1 << 20),
    )
    check_sizes(reader, spec)
    return spec


def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return all tensors but the routed experts."""
    shapes = frame_shapes(spec)
    for layer in spec.moe_layers:
        shapes[f"model.layers.{layer}.{_BLOCK}.router.layer.weight"] = (
            spec.num_experts,
            spec.hidden_size,
        )
    return shapes


GRANITEMOE = Family(
    model_type="granitemoe",
    architectures=frozenset({"GraniteMoeForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_part=stacked(
        {
            ExpertPart.GATE: f"{_BLOCK}.input_linear.weight",
            ExpertPart.UP: f"{_BLOCK}.input_linear.weight",
            ExpertPart.DOWN: f"{_BLOCK}.output_linear.weight",
        }
    ),
)
