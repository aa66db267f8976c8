"""Dense Qwen3 checkpoints: a norm on each head of q and k, some layers may see a window."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, check_sizes, read_activation, read_windows
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.shapes import one_by_one, standard_expert_name, standard_shapes
from runtime.spec.attention import QkNorm
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``qwen3`` config."""
    frame = read_frame(reader, norm_eps=1e-6)
    has_bias = reader.boolean("attention_bias", default=False)
    attention = dataclasses.replace(
        read_attention(reader, rope_theta=10_000.0, has_bias=has_bias),
        qk_norm=QkNorm.HEAD,
    )
    windows = read_windows(reader, frame["num_layers"], window=4096, first=28)
    spec = ModelSpec(
        model_type="qwen3",
        **frame,
        attention=tuple(dataclasses.replace(attention, window=window) for window in windows),
        activation=read_activation(reader, "hidden_act"),
        dense_width=reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


QWEN3 = Family(
    model_type="qwen3",
    architectures=frozenset({"Qwen3ForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=standard_shapes,
    expert_part=one_by_one(standard_expert_name),
)
