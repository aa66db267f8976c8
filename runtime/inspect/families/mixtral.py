"""Mixtral checkpoints: experts in every layer under their own names, weights always normalised."""

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, Shape, check_sizes, frame_shapes
from runtime.inspect.families.frame import read_frame
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart

_LETTERS = {ExpertPart.GATE: "w1", ExpertPart.DOWN: "w2", ExpertPart.UP: "w3"}


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``mixtral`` config."""
    frame = read_frame(reader, rms_eps=1e-5, rope_theta=1_000_000.0)
    window = reader.integer("sliding_window", minimum=0, default=0)
    spec = ModelSpec(
        model_type="mixtral",
        **frame,
        sliding_window=window if window < frame["max_context_tokens"] else 0,
        moe_layers=tuple(range(frame["num_layers"])),
        num_experts=reader.integer("num_local_experts", "num_experts", maximum=1 << 16),
        top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
        expert_width=reader.integer("intermediate_size", maximum=1 << 22),
        is_topk_normalised=True,
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
    architecture="MixtralForCausalLM",
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_name=expert_name,
)
