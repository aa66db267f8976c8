"""What configs of models with latent attention spell alike: DeepSeek's and those after them."""

import dataclasses

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import check_sizes, read_activation, refuse_variant
from runtime.inspect.families.frame import read_frame
from runtime.inspect.families.rope import read_rope, yarn_magnitude
from runtime.inspect.families.routing import read_num_experts
from runtime.spec.attention import LatentAttentionSpec
from runtime.spec.blocks import Routing
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec, YarnScaling

_LATENT_EPS = 1e-6
"""The norms over latent rows have it whatever the config says of the others."""
_MAX_DIM = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LatentDefaults:
    """What a family's published class takes where its config says nothing."""

    norm_eps: float = 1e-6
    query_dim: int = 1536
    plain_dim: int = 128
    value_dim: int = 128
    num_shared_experts: int
    num_dense_layers: int


def read_latent_model(
    reader: ConfigReader,
    model_type: str,
    routing: Routing,
    defaults: LatentDefaults,
    moe_layers: tuple[int, ...] | None = None,
) -> ModelSpec:
    """Return the spec of a model with latent attention and shared experts beside the routed ones.

    Without ``moe_layers`` the first layers are dense, as many as the config says.
    """
    frame = read_frame(reader, norm_eps=defaults.norm_eps)
    _refuse_what_differs(reader)
    if moe_layers is None:
        moe_layers = _behind_dense_layers(reader, frame["num_layers"], defaults.num_dense_layers)
    if not moe_layers:
        refuse_variant(reader, "no experts", "experts")
    attention = _read_attention(reader, defaults)
    width = reader.integer("moe_intermediate_size", maximum=1 << 20)
    num_shared = _count_or_none(reader, "n_shared_experts", defaults.num_shared_experts)
    is_all_moe = len(moe_layers) == frame["num_layers"]
    spec = ModelSpec(
        model_type=model_type,
        **frame,
        attention=(attention,) * frame["num_layers"],
        activation=read_activation(reader, "hidden_act"),
        moe_layers=moe_layers,
        num_experts=read_num_experts(reader),
        routing=routing,
        expert_width=width,
        shared_width=num_shared * width,
        dense_width=0 if is_all_moe else reader.integer("intermediate_size", maximum=1 << 22),
    )
    check_sizes(reader, spec)
    return spec


def _refuse_what_differs(reader: ConfigReader) -> None:
    """Add a problem for each thing that only some derived models do."""
    if reader["index_topk"] is not None or reader["index_n_heads"] is not None:
        refuse_variant(reader, "sparse attention by an indexer", "full attention")
    if reader.boolean("mlp_bias", default=False):
        refuse_variant(reader, "feed-forward biases", "feed-forward blocks without biases")
    if reader["moe_layer_freq"] not in (None, 1):
        step = spelled(reader["moe_layer_freq"])
        refuse_variant(reader, f"moe_layer_freq {step}", "experts in every later layer")


def _behind_dense_layers(reader: ConfigReader, num_layers: int, default: int) -> tuple[int, ...]:
    num_dense = reader.integer("first_k_dense_replace", minimum=0, default=default)
    return tuple(range(min(num_dense, num_layers), num_layers))


def _read_attention(reader: ConfigReader, defaults: LatentDefaults) -> LatentAttentionSpec:
    rope_dim = reader.integer("qk_rope_head_dim", maximum=_MAX_DIM, default=64)
    if rope_dim % 2:
        reader.refuse("qk_rope_head_dim", rope_dim, "an even number")
    plain_dim = reader.integer("qk_nope_head_dim", maximum=_MAX_DIM, default=defaults.plain_dim)
    rope = dataclasses.replace(
        read_rope(reader, rope_dim, 10_000.0),
        is_interleaved=reader.boolean("rope_interleave", default=True),
    )
    return LatentAttentionSpec(
        num_heads=reader.integer("num_attention_heads", maximum=1 << 16),
        latent_dim=reader.integer("kv_lora_rank", maximum=_MAX_DIM, default=512),
        plain_dim=plain_dim,
        rope_dim=rope_dim,
        value_dim=reader.integer("v_head_dim", maximum=_MAX_DIM, default=defaults.value_dim),
        query_dim=_count_or_none(reader, "q_lora_rank", defaults.query_dim),
        rope=rope,
        scale=(plain_dim + rope_dim) ** -0.5 * _stretched(reader, rope) ** 2,
        norm_eps=_LATENT_EPS,
        has_bias=reader.boolean("attention_bias", default=False),
    )


def _stretched(reader: ConfigReader, rope: RopeSpec) -> float:
    """Return by how much queries and keys each grow where the context is stretched."""
    table = {**reader.table("rope_scaling"), **reader.table("rope_parameters")}
    if not table.get("mscale_all_dim") or rope.scaling is None:
        return 1.0
    if not isinstance(rope.scaling, YarnScaling):
        refuse_variant(reader, "mscale_all_dim without yarn", "mscale_all_dim with yarn")
        return 1.0
    nested = ConfigReader(table, reader.file)
    weight = nested.number("mscale_all_dim", 1.0)
    reader.problems.extend(nested.problems)
    return yarn_magnitude(rope.scaling.factor, weight)


def _count_or_none(reader: ConfigReader, name: str, default: int) -> int:
    """Return a count that null makes 0; ``default`` is for a config that does not name it."""
    if name in reader.values and reader[name] is None:
        return 0
    return reader.integer(name, minimum=0, maximum=_MAX_DIM, default=default)
