"""ERNIE 4.5 checkpoints: neighbours turn together, softmax with a correction, shared experts."""

import dataclasses

from runtime.inspect.config import MAX_LAYERS, ConfigReader, spelled
from runtime.inspect.families.base import (
    Family,
    Shape,
    check_sizes,
    read_activation,
    refuse_variant,
)
from runtime.inspect.families.frame import read_frame, read_heads
from runtime.inspect.families.rope import read_rope
from runtime.inspect.families.shapes import (
    frame_shapes,
    gated_shapes,
    one_by_one,
    standard_expert_name,
)
from runtime.spec.attention import AttentionSpec
from runtime.spec.blocks import Routing
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of an ``ernie4_5_moe`` config."""
    frame = read_frame(reader, norm_eps=1e-5, is_tied=True)
    if reader.boolean("use_bias", default=False):
        refuse_variant(reader, "biases", "no biases")
    if reader.number("compression_ratio", 1.0) != 1.0:
        ratio = f"compression_ratio {spelled(reader['compression_ratio'])}"
        refuse_variant(reader, ratio, "positions as they are")
    heads = read_heads(reader)
    rope = read_rope(reader, heads["head_dim"], 500_000.0)
    attention = AttentionSpec(**heads, rope=dataclasses.replace(rope, is_interleaved=True))
    moe_layers = _read_moe_layers(reader, frame["num_layers"])
    is_all_moe = len(moe_layers) == frame["num_layers"]
    width = reader.integer("moe_intermediate_size", maximum=1 << 20)
    num_shared = reader.integer("moe_num_shared_experts", minimum=0, maximum=1 << 8, default=2)
    spec = ModelSpec(
        model_type="ernie4_5_moe",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=moe_layers,
        num_experts=reader.integer("moe_num_experts", maximum=1 << 16, default=64),
        routing=Routing(
            top_k=reader.integer("moe_k", maximum=1 << 16, default=6),
            is_normalised=True,
            least_sum=reader.number("moe_norm_min", 1e-12),
            has_correction=True,
        ),
        expert_width=width,
        shared_width=width * num_shared,
        dense_width=0 if is_all_moe else reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


def _read_moe_layers(reader: ConfigReader, num_layers: int) -> tuple[int, ...]:
    """Return the layers with experts: each so many-th one between a first and a last."""
    first = reader.integer("moe_layer_start_index", minimum=0, maximum=MAX_LAYERS, default=1)
    last = reader.integer("moe_layer_end_index", minimum=-1, maximum=MAX_LAYERS, default=-1)
    interval = reader.integer("moe_layer_interval", maximum=MAX_LAYERS, default=1)
    end = num_layers if last == -1 else min(last + 1, num_layers)
    layers = tuple(layer for layer in range(first, end) if (layer + 1) % interval == 0)
    if not layers:
        refuse_variant(reader, "no experts", "experts")
    return layers


def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return all tensors but the routed experts."""
    shapes = frame_shapes(spec)
    hidden = spec.hidden_size
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}.mlp"
        if layer not in spec.moe_layers:
            shapes |= gated_shapes(prefix, hidden, spec.dense_width)
            continue
        shapes[f"{prefix}.gate.weight"] = (spec.num_experts, hidden)
        shapes[f"{prefix}.moe_statics.e_score_correction_bias"] = (1, spec.num_experts)
        if spec.shared_width:
            shapes |= gated_shapes(f"{prefix}.shared_experts", hidden, spec.shared_width)
    return shapes


ERNIE4_5_MOE = Family(
    model_type="ernie4_5_moe",
    architectures=frozenset({"Ernie4_5_MoeForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_part=one_by_one(standard_expert_name),
)
