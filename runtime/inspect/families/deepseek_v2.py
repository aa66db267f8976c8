"""DeepSeek-V2 checkpoints, Lite too: latent attention, softmax routing, perhaps within groups."""

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, refuse_variant
from runtime.inspect.families.latent import LatentDefaults, read_latent_model
from runtime.inspect.families.routing import read_groups, require_text
from runtime.inspect.families.shapes import one_by_one, shared_experts_shapes, standard_expert_name
from runtime.spec.blocks import Routing
from runtime.spec.model import ModelSpec

_DEFAULTS = LatentDefaults(num_shared_experts=2, num_dense_layers=0)
_GROUPED = "group_limited_greedy"


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``deepseek_v2`` config."""
    require_text(reader, "scoring_func", "softmax")
    method = require_text(reader, "topk_method", "greedy", _GROUPED)
    if reader.boolean("norm_topk_prob", default=False):
        refuse_variant(reader, "normalised weights of experts", "weights that are not normalised")
    routing = Routing(
        top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
        scale=reader.number("routed_scaling_factor", 1.0),
        groups=(
            read_groups(reader, num_best=1, num_groups=1, num_kept=1)
            if method == _GROUPED
            else None
        ),
    )
    return read_latent_model(reader, "deepseek_v2", routing, _DEFAULTS)


DEEPSEEK_V2 = Family(
    model_type="deepseek_v2",
    architectures=frozenset({"DeepseekV2ForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=shared_experts_shapes,
    expert_part=one_by_one(standard_expert_name),
)
