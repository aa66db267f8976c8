"""Gemma 4 checkpoints: a dense block and routed experts side by side, two kinds of layers."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import (
    Family,
    Shape,
    check_sizes,
    read_activation,
    read_windows,
    refuse_variant,
)
from runtime.inspect.families.frame import read_frame
from runtime.inspect.families.rope import rope_of
from runtime.inspect.families.shapes import frame_shapes, gated_shapes, norm_shapes, stacked
from runtime.inspect.families.wrapped import wrapped
from runtime.spec.attention import AttentionSpec, QkNorm
from runtime.spec.blocks import Routing, Scales
from runtime.spec.model import ModelSpec
from runtime.spec.naming import Naming
from runtime.spec.tensors import ExpertPart

_SLIDING, _FULL = "sliding_attention", "full_attention"
_PATTERN = 6
"""Every so many-th layer sees everything where the config does not list the kinds."""
_ROPES: Mapping[str, Mapping[str, object]] = {
    _SLIDING: {"rope_theta": 10_000.0},
    _FULL: {
        "rope_type": "proportional",
        "partial_rotary_factor": 0.25,
        "rope_theta": 1_000_000.0,
    },
}
_MAX_DIM = 1 << 16
_MAX_WIDTH = 1 << 22


class _Size(NamedTuple):
    """What differs between the heads of layers."""

    head_dim: int
    num_kv_heads: int


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``gemma4_text`` config."""
    frame = read_frame(reader, norm_eps=1e-6, is_tied=True)
    _refuse_what_differs(reader)
    has_experts = reader.boolean("enable_moe_block", default=False)
    cap = reader["final_logit_softcapping"]
    spec = ModelSpec(
        model_type="gemma4",
        **frame,
        attention=_read_attention(reader, frame["num_layers"]),
        scales=Scales(
            embedding=frame["hidden_size"] ** 0.5,
            logits_cap=0.0 if cap is None else reader.number("final_logit_softcapping", 1.0),
        ),
        activation=read_activation(reader, "hidden_activation", default="gelu_pytorch_tanh"),
        dense_width=reader.integer("intermediate_size", maximum=_MAX_WIDTH),
    )
    if has_experts:
        spec = dataclasses.replace(
            spec,
            moe_layers=tuple(range(frame["num_layers"])),
            num_experts=reader.integer("num_experts", maximum=1 << 16),
            routing=Routing(
                top_k=reader.integer("top_k_experts", maximum=1 << 16), is_normalised=True
            ),
            expert_width=reader.integer("moe_intermediate_size", maximum=_MAX_WIDTH),
        )
    check_sizes(reader, spec)
    return spec


def _refuse_what_differs(reader: ConfigReader) -> None:
    """Add a problem for each thing that only the smaller models of the family do."""
    if reader.integer("hidden_size_per_layer_input", minimum=0, default=256):
        refuse_variant(reader, "embeddings for each layer", "one embedding for all layers")
    if reader.integer("num_kv_shared_layers", minimum=0, default=0):
        refuse_variant(reader, "keys and values shared by layers", "keys and values of each layer")
    if reader["use_bidirectional_attention"] == "all":
        refuse_variant(reader, "attention to later tokens", "attention to earlier tokens")


def _read_attention(reader: ConfigReader, num_layers: int) -> tuple[AttentionSpec, ...]:
    """Return the attention of each layer."""
    kinds = reader["layer_types"]
    if kinds is None:
        is_full = ((layer + 1) % _PATTERN == 0 for layer in range(num_layers))
        kinds = [_FULL if each else _SLIDING for each in is_full]
    nested = ConfigReader({**reader.values, "layer_types": kinds}, reader.file)
    windows = read_windows(nested, num_layers, window=512)
    reader.problems.extend(nested.problems)
    if nested.problems or not isinstance(kinds, list):
        kinds = [_FULL] * num_layers
    if kinds[-1] != _FULL:
        refuse_variant(reader, "a window in the last layer", "a last layer that sees everything")
    sizes = _read_sizes(reader, kinds)
    made = {
        (kind, size, window): _attention_of(reader, kind, size, window)
        for kind, size, window in dict.fromkeys(zip(kinds, sizes, windows, strict=True))
    }
    return tuple(made[key] for key in zip(kinds, sizes, windows, strict=True))


def _read_sizes(reader: ConfigReader, kinds: list[str]) -> list[_Size]:
    """Return the sizes of each layer's heads: listed one by one, or those of its kind."""
    plain = _Size(
        reader.integer("head_dim", maximum=_MAX_DIM, default=256),
        reader.integer("num_key_value_heads", maximum=_MAX_DIM, default=4),
    )
    if reader["per_layer_config"] is not None:
        listed = reader.table("per_layer_config")
        return [_size_of(reader, listed.get(str(layer)), plain) for layer in range(len(kinds))]
    full = plain._replace(head_dim=reader.integer("global_head_dim", maximum=_MAX_DIM, default=512))
    if reader.boolean("attention_k_eq_v", default=False):
        name = "num_global_key_value_heads"
        num_kv_heads = reader.integer(name, maximum=_MAX_DIM, default=plain.num_kv_heads)
        full = full._replace(num_kv_heads=num_kv_heads)
    return [full if kind == _FULL else plain for kind in kinds]


def _size_of(reader: ConfigReader, listed: object, plain: _Size) -> _Size:
    """Return the sizes of a layer of which the config lists what differs."""
    if listed is None:
        return plain
    if not (isinstance(listed, dict) and listed.keys() <= {"head_dim", "num_key_value_heads"}):
        reader.refuse("per_layer_config", spelled(listed), "head_dim and num_key_value_heads")
        return plain
    nested = ConfigReader(listed, reader.file)
    size = _Size(
        nested.integer("head_dim", maximum=_MAX_DIM, default=plain.head_dim),
        nested.integer("num_key_value_heads", maximum=_MAX_DIM, default=plain.num_kv_heads),
    )
    reader.problems.extend(nested.problems)
    return size


def _attention_of(reader: ConfigReader, kind: str, size: _Size, window: int) -> AttentionSpec:
    """Return the attention of layers of a kind."""
    tables = reader.table("rope_parameters") or _ROPES
    table = tables.get(kind)
    if not isinstance(table, Mapping):
        reader.refuse(f"rope_parameters.{kind}", table, "an object")
        table = _ROPES[kind]
    has_bias = reader.boolean("attention_bias", default=False)
    is_shared = kind == _FULL and reader.boolean("attention_k_eq_v", default=False)
    return AttentionSpec(
        num_heads=reader.integer("num_attention_heads", maximum=_MAX_DIM, default=8),
        num_kv_heads=size.num_kv_heads,
        head_dim=size.head_dim,
        rope=rope_of(reader, table, size.head_dim, 10_000.0),
        window=window,
        scale=1.0,
        has_qkv_bias=has_bias,
        has_output_bias=has_bias,
        qk_norm=QkNorm.HEAD,
        has_value_matrix=not is_shared,
        has_value_norm=True,
    )


def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return all tensors but the routed experts."""
    shapes = frame_shapes(spec)
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}"
        shapes |= gated_shapes(f"{prefix}.mlp", spec.hidden_size, spec.dense_width)
        shapes |= norm_shapes(spec, f"{prefix}.pre_feedforward_layernorm")
        shapes |= norm_shapes(spec, f"{prefix}.post_feedforward_layernorm")
        shapes[f"{prefix}.layer_scalar"] = (1,)
        if spec.num_experts:
            shapes |= norm_shapes(spec, f"{prefix}.post_feedforward_layernorm_1")
            shapes |= norm_shapes(spec, f"{prefix}.pre_feedforward_layernorm_2")
            shapes |= norm_shapes(spec, f"{prefix}.post_feedforward_layernorm_2")
            shapes[f"{prefix}.router.proj.weight"] = (spec.num_experts, spec.hidden_size)
            shapes[f"{prefix}.router.scale"] = (spec.hidden_size,)
            shapes[f"{prefix}.router.per_expert_scale"] = (spec.num_experts,)
    return shapes


GEMMA4_TEXT = Family(
    model_type="gemma4_text",
    architectures=frozenset({"Gemma4ForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_part=stacked(
        {
            ExpertPart.GATE: "experts.gate_up_proj",
            ExpertPart.UP: "experts.gate_up_proj",
            ExpertPart.DOWN: "experts.down_proj",
        }
    ),
)
GEMMA4 = wrapped(
    GEMMA4_TEXT,
    model_type="gemma4",
    architectures=("Gemma4ForConditionalGeneration",),
    text_types=(GEMMA4_TEXT.model_type,),
    naming=Naming(body="model.language_model"),
)
