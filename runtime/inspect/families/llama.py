"""Llama checkpoints: dense, every layer alike."""

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, check_sizes, read_activation, refuse_variant
from runtime.inspect.families.frame import read_attention, read_frame
from runtime.inspect.families.shapes import one_by_one, standard_expert_name, standard_shapes
from runtime.spec.model import ModelSpec


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``llama`` config."""
    frame = read_frame(reader, norm_eps=1e-6)
    if reader.boolean("mlp_bias", default=False):
        refuse_variant(reader, "feed-forward biases", "feed-forward blocks without biases")
    has_bias = reader.boolean("attention_bias", default=False)
    attention = read_attention(reader, rope_theta=10_000.0, has_bias=has_bias)
    spec = ModelSpec(
        model_type="llama",
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        dense_width=reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


LLAMA = Family(
    model_type="llama",
    architectures=frozenset({"LlamaForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=standard_shapes,
    expert_part=one_by_one(standard_expert_name),
)
