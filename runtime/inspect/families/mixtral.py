"""Mixtral checkpoints: experts in every layer under their own names, weights always normalised."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, Shape, check_sizes, read_activation, read_window
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.shapes import frame_shapes, one_by_one
from runtime.spec.blocks import Routing
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart

_LETTERS = {ExpertPart.GATE: "w1", ExpertPart.DOWN: "w2", ExpertPart.UP: "w3"}


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``mixtral`` config."""
    frame = read_frame(reader, norm_eps=1e-5)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=1_000_000.0),
        window=read_window(reader),
    )
    spec = ModelSpec(
        model_type="mixtral",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=tuple(range(frame["num_layers"])),
        num_experts=reader.integer("num_local_experts", "num_experts", maximum=1 << 16),
        routing=Routing(
            top_k=reader.integer("num_experts_per_tok", maximum=1 << 16), is_normalised=True
        ),
        expert_width=reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return all tensors but the routed experts."""
    shapes = frame_shapes(spec)
    for layer in spec.moe_layers:
        shapes[f"model.layers.{layer}.block_sparse_moe.gate.weight"] = (
            spec.num_experts,
            spec.hidden_size,
        )
    return shapes


def expert_name(expert: ExpertId, part: ExpertPart) -> str:
    """Return the published name of one matrix of a routed expert."""
    prefix = f"model.layers.{expert.layer}.block_sparse_moe.experts.{expert.expert}"
    return f"{prefix}.{_LETTERS[part]}.weight"


MIXTRAL = Family(
    model_type="mixtral",
    architectures=frozenset({"MixtralForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_part=one_by_one(expert_name),
)
