"""What one family says about its configs and tensors, and the checks that families share."""

import dataclasses
from collections.abc import Callable, Mapping

from runtime.errors import LarderError
from runtime.inspect.config import MAX_LAYERS, ConfigReader, spelled
from runtime.protocol.errors import ErrorCode
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart

Shape = tuple[int, ...]
ACTIVATIONS = frozenset({"silu", "swish"})
MAX_EXPERTS = 1 << 16
"""Most routed experts of all layers together."""
ROPE_TYPES = frozenset({"default"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How checkpoints of one ``model_type`` are read."""

    model_type: str
    architecture: str
    """The class name in ``architectures`` of checkpoints that can chat."""
    read_spec: Callable[[ConfigReader], ModelSpec]
    """Problems are left in the reader; the spec counts only if there are none."""
    dense_shapes: Callable[[ModelSpec], dict[str, Shape]]
    """Every tensor that is not a routed expert, by published name."""
    expert_name: Callable[[ExpertId, ExpertPart], str]


def refuse_variant(reader: ConfigReader, variant: str, supported: str) -> None:
    """Add the problem that this checkpoint needs something its family does not compute here."""
    model_type = reader.text("model_type")
    reader.problems.append(
        LarderError(
            ErrorCode.ARCHITECTURE_UNSUPPORTED,
            architecture=f"{model_type} with {variant}",
            supported=f"{model_type} with {supported}",
        )
    )


def check_activation(reader: ConfigReader) -> None:
    """Add a problem unless the feed-forward activation is SiLU."""
    name = reader.text("hidden_act", "silu")
    if name not in ACTIVATIONS:
        refuse_variant(reader, f"activation {spelled(name)}", "activation silu")


def read_rope_theta(reader: ConfigReader, default: float) -> float:
    """Return the rotary base; every kind of scaling is refused by its name."""
    scaling = reader.table("rope_scaling")
    parameters = reader.table("rope_parameters")
    for table in (scaling, parameters):
        kind = table.get("rope_type", table.get("type", "default"))
        if kind not in (None, *ROPE_TYPES):
            refuse_variant(reader, f"rope scaling {spelled(kind)}", "plain rope")
        elif any(isinstance(value, dict) for value in table.values()):
            refuse_variant(reader, "one rope for each kind of layer", "plain rope")
    rotary_ratio = parameters.get("partial_rotary_factor", reader["partial_rotary_factor"])
    if rotary_ratio not in (None, 1):
        refuse_variant(reader, f"partial rope {spelled(rotary_ratio)}", "plain rope")
    nested = ConfigReader(parameters, reader.file)
    theta = nested.number("rope_theta", reader.number("rope_theta", default))
    reader.problems.extend(nested.problems)
    return theta


def read_moe_layers(reader: ConfigReader, num_layers: int) -> tuple[int, ...]:
    """Return the layers with routed experts: each ``step``-th one that is not named dense."""
    step = reader.integer("decoder_sparse_step", default=1)
    dense = frozenset(reader.integers("mlp_only_layers", maximum=MAX_LAYERS))
    layers = tuple(
        layer for layer in range(num_layers) if layer not in dense and (layer + 1) % step == 0
    )
    if not layers:
        refuse_variant(reader, "no experts", "experts")
    return layers


def refuse_partial_window(reader: ConfigReader) -> None:
    """Add a problem if only some layers see a window that the context exceeds."""
    window = reader.integer("sliding_window", minimum=0, default=0)
    context_tokens = reader.integer("max_position_embeddings", default=1)
    kinds = reader["layer_types"]
    has_windows = reader.boolean("use_sliding_window", default=False) or (
        isinstance(kinds, list) and any(kind != "full_attention" for kind in kinds)
    )
    if has_windows and window < context_tokens:
        refuse_variant(reader, "sliding windows in some layers", "full attention")


def check_sizes(reader: ConfigReader, spec: ModelSpec) -> None:
    """Add problems for counts that contradict each other."""
    if spec.num_heads % spec.num_kv_heads:
        reader.refuse("num_key_value_heads", spec.num_kv_heads, f"a divisor of {spec.num_heads}")
    if spec.head_dim % 2:
        reader.refuse("head_dim", spec.head_dim, "an even number")
    if spec.top_k > spec.num_experts:
        reader.refuse("num_experts_per_tok", spec.top_k, f"at most {spec.num_experts}")
    num_experts = spec.num_experts * len(spec.moe_layers)
    if num_experts > MAX_EXPERTS:
        reader.refuse("num_experts", num_experts, f"at most {MAX_EXPERTS} in all layers together")


def attention_shapes(spec: ModelSpec, prefix: str) -> dict[str, Shape]:
    """Return the tensors of one attention block."""
    heads = {"q": spec.num_heads, "k": spec.num_kv_heads, "v": spec.num_kv_heads}
    shapes: dict[str, Shape] = {}
    for letter, count in heads.items():
        shapes[f"{prefix}.{letter}_proj.weight"] = (count * spec.head_dim, spec.hidden_size)
        if spec.has_qkv_bias:
            shapes[f"{prefix}.{letter}_proj.bias"] = (count * spec.head_dim,)
    shapes[f"{prefix}.o_proj.weight"] = (spec.hidden_size, spec.num_heads * spec.head_dim)
    if spec.has_qk_norm:
        shapes[f"{prefix}.q_norm.weight"] = (spec.head_dim,)
        shapes[f"{prefix}.k_norm.weight"] = (spec.head_dim,)
    return shapes


def gated_shapes(prefix: str, hidden_size: int, width: int) -> dict[str, Shape]:
    """Return the three matrices of one gated feed-forward block."""
    return {
        f"{prefix}.gate_proj.weight": (width, hidden_size),
        f"{prefix}.up_proj.weight": (width, hidden_size),
        f"{prefix}.down_proj.weight": (hidden_size, width),
    }


def frame_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return embedding, norms, attention and output matrix, which all families share."""
    hidden = spec.hidden_size
    shapes: dict[str, Shape] = {"model.embed_tokens.weight": (spec.vocabulary_size, hidden)}
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}"
        shapes[f"{prefix}.input_layernorm.weight"] = (hidden,)
        shapes |= attention_shapes(spec, f"{prefix}.self_attn")
        shapes[f"{prefix}.post_attention_layernorm.weight"] = (hidden,)
    shapes["model.norm.weight"] = (hidden,)
    if not spec.is_tied:
        shapes["lm_head.weight"] = (spec.vocabulary_size, hidden)
    return shapes


def expert_shapes(spec: ModelSpec) -> Mapping[ExpertPart, Shape]:
    """Return the shapes of the three matrices of every routed expert."""
    wide = (spec.expert_width, spec.hidden_size)
    return {
        ExpertPart.GATE: wide,
        ExpertPart.UP: wide,
        ExpertPart.DOWN: (spec.hidden_size, spec.expert_width),
    }
