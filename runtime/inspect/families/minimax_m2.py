"""MiniMax-M2 checkpoints: named like Mixtral's, one norm over all heads, a part of each turned."""

import dataclasses

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import (
    Family,
    Shape,
    check_sizes,
    read_activation,
    refuse_variant,
)
from runtime.inspect.families.frame import read_attention, read_frame, read_heads
from runtime.inspect.families.mixtral import dense_shapes as mixtral_shapes
from runtime.inspect.families.mixtral import expert_name
from runtime.inspect.families.shapes import one_by_one
from runtime.spec.attention import QkNorm
from runtime.spec.blocks import Routing, Score
from runtime.spec.model import ModelSpec

_EXPECTED: dict[str, object] = {
    "qk_norm_type": "per_layer",
    "scoring_func": "sigmoid",
    "shared_intermediate_size": 0,
    "use_qk_norm": True,
    "use_routing_bias": True,
}
"""What published configs say, and all that is computed."""


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``minimax_m2`` config."""
    frame = read_frame(reader, norm_eps=1e-6)
    for name, expected in _EXPECTED.items():
        if reader[name] not in (None, expected):
            refuse_variant(reader, f"{name} {spelled(reader[name])}", f"{name} {spelled(expected)}")
    kinds = reader["attn_type_list"]
    if kinds is not None and kinds != [1] * frame["num_layers"]:
        refuse_variant(reader, "attention of other kinds in some layers", "full attention")
    head_dim = read_heads(reader)["head_dim"]
    num_turned = reader.integer("rotary_dim", minimum=2, maximum=head_dim, default=head_dim)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=5_000_000.0, rope_share=num_turned / head_dim),
        qk_norm=QkNorm.WHOLE,
    )
    spec = ModelSpec(
        model_type="minimax_m2",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=tuple(range(frame["num_layers"])),
        num_experts=reader.integer("num_local_experts", "num_experts", maximum=1 << 16),
        routing=Routing(
            top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
            score=Score.SIGMOID,
            is_normalised=True,
            has_correction=True,
        ),
        expert_width=reader.integer("intermediate_size", maximum=1 << 20),
    )
    check_sizes(reader, spec)
    return spec


def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return all tensors but the routed experts."""
    shapes = mixtral_shapes(spec)
    for layer in spec.moe_layers:
        name = f"model.layers.{layer}.block_sparse_moe.e_score_correction_bias"
        shapes[name] = (spec.num_experts,)
    return shapes


MINIMAX_M2 = Family(
    model_type="minimax_m2",
    architectures=frozenset({"MiniMaxM2ForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_part=one_by_one(expert_name),
)
