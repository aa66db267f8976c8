"""The tensors that families have in common, by published name."""

from collections.abc import Callable, Mapping

from runtime.inspect.families.base import LocatePart, PartPlace, Shape
from runtime.spec.attention import AnyAttention, LatentAttentionSpec, QkNorm
from runtime.spec.blocks import NormKind
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart


def frame_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return embedding, norms, attention and output matrix, which most families share."""
    hidden = spec.hidden_size
    shapes: dict[str, Shape] = {"model.embed_tokens.weight": (spec.vocabulary_size, hidden)}
    for layer, attention in enumerate(spec.attention):
        prefix = f"model.layers.{layer}"
        shapes |= norm_shapes(spec, f"{prefix}.input_layernorm")
        shapes |= attention_shapes(attention, hidden, f"{prefix}.self_attn")
        shapes |= norm_shapes(spec, f"{prefix}.post_attention_layernorm")
    shapes |= norm_shapes(spec, "model.norm")
    if not spec.is_tied:
        shapes["lm_head.weight"] = (spec.vocabulary_size, hidden)
    if spec.has_output_bias:
        shapes["lm_head.bias"] = (spec.vocabulary_size,)
    return shapes


def norm_shapes(spec: ModelSpec, prefix: str) -> dict[str, Shape]:
    """Return the tensors of one norm over the stream."""
    shapes: dict[str, Shape] = {f"{prefix}.weight": (spec.hidden_size,)}
    if spec.norm.kind is NormKind.LAYER:
        shapes[f"{prefix}.bias"] = (spec.hidden_size,)
    return shapes


def attention_shapes(attention: AnyAttention, hidden: int, prefix: str) -> dict[str, Shape]:
    """Return the tensors of one attention block."""
    if isinstance(attention, LatentAttentionSpec):
        return _latent_shapes(attention, hidden, prefix)
    dim = attention.head_dim
    heads = {"q": attention.num_heads, "k": attention.num_kv_heads, "v": attention.num_kv_heads}
    shapes: dict[str, Shape] = {}
    for letter, count in heads.items():
        if letter == "v" and not attention.has_value_matrix:
            continue
        has_bias = attention.has_qkv_bias
        shapes |= _projection(f"{prefix}.{letter}_proj", count * dim, hidden, has_bias=has_bias)
    width = attention.num_heads * dim
    has_bias = attention.has_output_bias
    shapes |= _projection(f"{prefix}.o_proj", hidden, width, has_bias=has_bias)
    for letter in ("q", "k"):
        if attention.qk_norm is QkNorm.HEAD:
            shapes[f"{prefix}.{letter}_norm.weight"] = (dim,)
        elif attention.qk_norm is QkNorm.WHOLE:
            shapes[f"{prefix}.{letter}_norm.weight"] = (heads[letter] * dim,)
    if attention.has_sinks:
        shapes[f"{prefix}.sinks"] = (attention.num_heads,)
    return shapes


def _latent_shapes(own: LatentAttentionSpec, hidden: int, prefix: str) -> dict[str, Shape]:
    queries = own.num_heads * (own.plain_dim + own.rope_dim)
    shapes: dict[str, Shape] = {}
    if own.query_dim:
        down = f"{prefix}.q_a_proj"
        shapes |= _projection(down, own.query_dim, hidden, has_bias=own.has_bias)
        shapes[f"{prefix}.q_a_layernorm.weight"] = (own.query_dim,)
        shapes[f"{prefix}.q_b_proj.weight"] = (queries, own.query_dim)
    else:
        shapes[f"{prefix}.q_proj.weight"] = (queries, hidden)
    down, width = f"{prefix}.kv_a_proj_with_mqa", own.latent_dim + own.rope_dim
    shapes |= _projection(down, width, hidden, has_bias=own.has_bias)
    shapes[f"{prefix}.kv_a_layernorm.weight"] = (own.latent_dim,)
    expanded = own.num_heads * (own.plain_dim + own.value_dim)
    shapes[f"{prefix}.kv_b_proj.weight"] = (expanded, own.latent_dim)
    values = own.num_heads * own.value_dim
    shapes |= _projection(f"{prefix}.o_proj", hidden, values, has_bias=own.has_bias)
    return shapes


def _projection(name: str, rows: int, columns: int, *, has_bias: bool) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {f"{name}.weight": (rows, columns)}
    if has_bias:
        shapes[f"{name}.bias"] = (rows,)
    return shapes


def gated_shapes(prefix: str, hidden_size: int, width: int) -> dict[str, Shape]:
    """Return the three matrices of one gated feed-forward block."""
    return {
        f"{prefix}.gate_proj.weight": (width, hidden_size),
        f"{prefix}.up_proj.weight": (width, hidden_size),
        f"{prefix}.down_proj.weight": (hidden_size, width),
    }


def standard_shapes(spec: ModelSpec, shared: str = "shared_expert") -> dict[str, Shape]:
    """Return the frame, and ``mlp`` in each layer: dense, or routed by ``gate``.

    ``shared`` is what the family calls the experts that always run.
    """
    shapes = frame_shapes(spec)
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}.mlp"
        if layer not in spec.moe_layers:
            shapes |= gated_shapes(prefix, spec.hidden_size, spec.dense_width)
            continue
        shapes[f"{prefix}.gate.weight"] = (spec.num_experts, spec.hidden_size)
        if spec.routing.has_correction:
            shapes[f"{prefix}.gate.e_score_correction_bias"] = (spec.num_experts,)
        if spec.shared_width:
            shapes |= gated_shapes(f"{prefix}.{shared}", spec.hidden_size, spec.shared_width)
        if spec.shared_width and spec.has_shared_gate:
            shapes[f"{prefix}.{shared}_gate.weight"] = (1, spec.hidden_size)
    return shapes


def shared_experts_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return the same for families that call the experts that always run ``shared_experts``."""
    return standard_shapes(spec, "shared_experts")


def part_shape(spec: ModelSpec, part: ExpertPart) -> tuple[int, int]:
    """Return the shape of one matrix of every routed expert."""
    if part is ExpertPart.DOWN:
        return (spec.hidden_size, spec.expert_width)
    return (spec.expert_width, spec.hidden_size)


def one_by_one(name_of: Callable[[ExpertId, ExpertPart], str]) -> LocatePart:
    """Return the places of experts of which each matrix is a tensor of its own."""

    def place(spec: ModelSpec, expert: ExpertId, part: ExpertPart) -> PartPlace:
        return PartPlace(name=name_of(expert, part), shape=part_shape(spec, part))

    return place


def stacked(names: Mapping[ExpertPart, str]) -> LocatePart:
    """Return the places of experts that are stacked in tensors of three dimensions.

    ``names`` are those below ``model.layers.N.``; where gate and up have one name, they lie in one
    tensor, gate first.
    """
    is_fused = names[ExpertPart.GATE] == names[ExpertPart.UP]

    def place(spec: ModelSpec, expert: ExpertId, part: ExpertPart) -> PartPlace:
        rows, columns = part_shape(spec, part)
        is_half = is_fused and part is not ExpertPart.DOWN
        return PartPlace(
            name=f"model.layers.{expert.layer}.{names[part]}",
            shape=(spec.num_experts, 2 * rows if is_half else rows, columns),
            index=expert.expert,
            first_row=rows if is_half and part is ExpertPart.UP else 0,
        )

    return place


def standard_expert_name(expert: ExpertId, part: ExpertPart) -> str:
    """Return the name that one matrix of a routed expert has in most families."""
    return f"model.layers.{expert.layer}.mlp.experts.{expert.expert}.{part}_proj.weight"
