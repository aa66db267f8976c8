"""DeepSeek-V3 checkpoints, with R1, V3.1 and Kimi K2: sigmoid routing with a correction."""

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family
from runtime.inspect.families.latent import LatentDefaults, read_latent_model
from runtime.inspect.families.routing import read_sigmoid_routing
from runtime.inspect.families.shapes import one_by_one, shared_experts_shapes, standard_expert_name
from runtime.spec.model import ModelSpec

_DEFAULTS = LatentDefaults(num_shared_experts=1, num_dense_layers=3)


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``deepseek_v3`` config."""
    routing = read_sigmoid_routing(reader, scale=2.5, groups=(8, 4))
    return read_latent_model(reader, "deepseek_v3", routing, _DEFAULTS)


DEEPSEEK_V3 = Family(
    model_type="deepseek_v3",
    aliases=("kimi_k2",),
    architectures=frozenset({"DeepseekV3ForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=shared_experts_shapes,
    expert_part=one_by_one(standard_expert_name),
)
