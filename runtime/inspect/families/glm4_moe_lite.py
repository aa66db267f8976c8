"""GLM-4.7-Flash checkpoints: latent attention and routing as in DeepSeek-V3, other widths."""

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import Family, refuse_variant
from runtime.inspect.families.latent import LatentDefaults, read_latent_model
from runtime.inspect.families.routing import read_sigmoid_routing
from runtime.inspect.families.shapes import one_by_one, shared_experts_shapes, standard_expert_name
from runtime.spec.model import ModelSpec

_DEFAULTS = LatentDefaults(
    norm_eps=1e-5,
    query_dim=768,
    plain_dim=192,
    value_dim=256,
    num_shared_experts=1,
    num_dense_layers=1,
)
_KINDS = ("dense", "sparse")


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``glm4_moe_lite`` config."""
    routing = read_sigmoid_routing(reader, scale=1.8, groups=(1, 1))
    moe_layers = _read_moe_layers(reader)
    return read_latent_model(reader, "glm4_moe_lite", routing, _DEFAULTS, moe_layers)


def _read_moe_layers(reader: ConfigReader) -> tuple[int, ...] | None:
    """Return the layers that are listed as sparse, None without a list."""
    kinds = reader["mlp_layer_types"]
    if kinds is None:
        return None
    num_layers = reader.integer("num_hidden_layers")
    if not (isinstance(kinds, list) and len(kinds) == num_layers):
        reader.refuse("mlp_layer_types", spelled(kinds), f"a list of {num_layers} kinds")
        return None
    strange = [kind for kind in kinds if kind not in _KINDS]
    if strange:
        refuse_variant(reader, f"layers of kind {spelled(strange[0])}", f"layers {_KINDS}")
    return tuple(layer for layer, kind in enumerate(kinds) if kind == "sparse")


GLM4_MOE_LITE = Family(
    model_type="glm4_moe_lite",
    architectures=frozenset({"Glm4MoeLiteForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=shared_experts_shapes,
    expert_part=one_by_one(standard_expert_name),
)
