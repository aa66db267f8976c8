"""gpt-oss checkpoints: experts stacked and woven, in bf16 or published in MXFP4."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, PartPlace, Shape, check_sizes, read_windows
from runtime.inspect.families.frame import read_frame, read_heads
from runtime.inspect.families.rope import read_rope, rope_of
from runtime.inspect.families.shapes import frame_shapes
from runtime.protocol.values import WeightFormat
from runtime.spec.attention import AttentionSpec
from runtime.spec.blocks import Activation, ActivationKind, Routing
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec
from runtime.spec.tensors import GROUP_SIZE, ExpertId, ExpertPart

_METHOD = "mxfp4"
_THETA = 150_000.0
_HEAD_DIM = 64
_WINDOW = 128
_ROPE: dict[str, object] = {
    "rope_type": "yarn",
    "factor": 32.0,
    "original_max_position_embeddings": 4096,
    "truncate": False,
}
"""What a config means that says nothing of its rotary scaling."""


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``gpt_oss`` config."""
    frame = read_frame(reader, norm_eps=1e-5)
    heads = read_heads(reader, head_dim=_HEAD_DIM)
    rope = _read_rope(reader, heads["head_dim"])
    has_bias = reader.boolean("attention_bias", default=True)
    attention = AttentionSpec(
        **heads, rope=rope, has_qkv_bias=has_bias, has_output_bias=has_bias, has_sinks=True
    )
    windows = _read_windows(reader, frame["num_layers"])
    is_packed = reader.table("quantization_config").get("quant_method") == _METHOD
    spec = ModelSpec(
        model_type="gpt_oss",
        **frame,
        attention=tuple(dataclasses.replace(attention, window=window) for window in windows),
        activation=Activation(
            ActivationKind.CLAMPED_SWIGLU,
            limit=reader.number("swiglu_limit", 7.0),
            alpha=reader.number("swiglu_alpha", 1.702),
        ),
        moe_layers=tuple(range(frame["num_layers"])),
        num_experts=reader.integer("num_local_experts", "num_experts", maximum=1 << 16),
        # The softmax of the chosen logits is the normalised softmax of all.
        routing=Routing(
            top_k=reader.integer("num_experts_per_tok", "experts_per_token", maximum=1 << 16),
            is_normalised=True,
        ),
        expert_width=reader.integer("intermediate_size", maximum=1 << 20),
        packed_experts=WeightFormat.MXFP4 if is_packed else None,
    )
    check_sizes(reader, spec)
    if is_packed:
        _check_groups(reader, spec)
    return spec


def _read_rope(reader: ConfigReader, head_dim: int) -> RopeSpec:
    if reader["rope_scaling"] is None and reader["rope_parameters"] is None:
        return rope_of(reader, {**_ROPE, "rope_theta": reader["rope_theta"]}, head_dim, _THETA)
    return read_rope(reader, head_dim, _THETA)


def _read_windows(reader: ConfigReader, num_layers: int) -> list[int]:
    """Return how far each layer looks back; unless the config says otherwise, every other one."""
    if reader["layer_types"] is not None:
        return read_windows(reader, num_layers, window=_WINDOW)
    window = reader.integer("sliding_window", default=_WINDOW)
    return [0 if layer % 2 else window for layer in range(num_layers)]


def _check_groups(reader: ConfigReader, spec: ModelSpec) -> None:
    """Add problems for widths that cannot be cut into groups with one scale each."""
    widths = {"hidden_size": spec.hidden_size, "intermediate_size": spec.expert_width}
    for name, width in widths.items():
        if width % GROUP_SIZE:
            reader.refuse(name, width, f"a multiple of {GROUP_SIZE}, as {_METHOD} needs it")


def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return all tensors but the matrices of routed experts."""
    shapes = frame_shapes(spec)
    for layer in spec.moe_layers:
        prefix = f"model.layers.{layer}.mlp"
        shapes[f"{prefix}.router.weight"] = (spec.num_experts, spec.hidden_size)
        shapes[f"{prefix}.router.bias"] = (spec.num_experts,)
        shapes[f"{prefix}.experts.gate_up_proj_bias"] = (spec.num_experts, 2 * spec.expert_width)
        shapes[f"{prefix}.experts.down_proj_bias"] = (spec.num_experts, spec.hidden_size)
    return shapes


def expert_part(spec: ModelSpec, expert: ExpertId, part: ExpertPart) -> PartPlace:
    """Return where a matrix lies: gate and up take turns, and plain numbers lie turned."""
    is_down = part is ExpertPart.DOWN
    stem = "down_proj" if is_down else "gate_up_proj"
    name = f"model.layers.{expert.layer}.mlp.experts.{stem}"
    inputs, outputs = spec.hidden_size, 2 * spec.expert_width
    if is_down:
        inputs, outputs = spec.expert_width, spec.hidden_size
    is_packed = spec.packed_experts is not None
    block = (outputs, inputs) if is_packed else (inputs, outputs)
    return PartPlace(
        name=f"{name}_blocks" if is_packed else name,
        scales=f"{name}_scales" if is_packed else "",
        shape=(spec.num_experts, *block),
        index=expert.expert,
        first_row=1 if part is ExpertPart.UP else 0,
        row_step=1 if is_down else 2,
        is_transposed=not is_packed,
    )


GPT_OSS = Family(
    model_type="gpt_oss",
    architectures=frozenset({"GptOssForCausalLM"}),
    read_spec=read_spec,
    dense_shapes=dense_shapes,
    expert_part=expert_part,
    quant_methods=frozenset({_METHOD}),
)
