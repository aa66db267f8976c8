"""What one family says about its configs and tensors, and the checks that families share."""

import dataclasses
from collections.abc import Callable, Mapping

from runtime.errors import LarderError
from runtime.inspect.config import MAX_LAYERS, ConfigReader, spelled
from runtime.protocol.errors import ErrorCode
from runtime.spec.attention import AttentionSpec
from runtime.spec.blocks import SILU, Activation, ActivationKind
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart

Shape = tuple[int, ...]
ACTIVATIONS: Mapping[str, Activation] = {
    "silu": SILU,
    "swish": SILU,
    "gelu_pytorch_tanh": Activation(ActivationKind.GELU_TANH),
}
MAX_EXPERTS = 1 << 16
"""Most routed experts of all layers together."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartPlace:
    """Where one matrix of a routed expert lies: a tensor, or a part of one.

    A tensor with the experts stacked has their number as its first dimension, and ``index`` says
    which is meant. Of its block the rows from ``first_row`` on with a distance of ``row_step`` are
    the matrix; if ``is_transposed``, the columns of the block count as rows.

    With ``scales`` the matrix is published in MXFP4: instead of the last dimension the tensor has
    groups of 16 bytes, and another of that name has one byte for each group.
    """

    name: str
    shape: Shape
    """Of the whole tensor, a number for each weight."""
    index: int | None = None
    first_row: int = 0
    row_step: int = 1
    is_transposed: bool = False
    scales: str = ""
    otherwise: "PartPlace | None" = None
    """Where the matrix lies if the tensor has that shape instead."""


LocatePart = Callable[[ModelSpec, ExpertId, ExpertPart], PartPlace]
"""Says where one matrix of a routed expert lies."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How checkpoints of one ``model_type`` are read."""

    model_type: str
    aliases: tuple[str, ...] = ()
    """Other names of the same architecture in ``model_type``."""
    architectures: frozenset[str]
    """The class names in ``architectures`` of checkpoints that can chat."""
    read_spec: Callable[[ConfigReader], ModelSpec]
    """Problems are left in the reader; the spec counts only if there are none."""
    dense_shapes: Callable[[ModelSpec], dict[str, Shape]]
    """Every tensor that is not a routed expert, by published name."""
    expert_part: LocatePart
    quant_methods: frozenset[str] = frozenset()
    """The methods in ``quantization_config`` that ``read_spec`` takes into account."""


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


def read_activation(reader: ConfigReader, *names: str, default: str = "silu") -> Activation:
    """Return the feed-forward activation, named by the first of ``names`` that is there."""
    field = next((name for name in names if reader[name] is not None), names[0])
    name = reader.text(field, default)
    activation = ACTIVATIONS.get(name)
    if activation is None:
        known = ", ".join(sorted(ACTIVATIONS))
        refuse_variant(reader, f"activation {spelled(name)}", f"activation {known}")
        return SILU
    return activation


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


def read_window(reader: ConfigReader, *, default: int = 0) -> int:
    """Return how far every layer looks back, 0 where that is the whole context."""
    window = reader.integer("sliding_window", minimum=0, default=default)
    return window if window < reader.integer("max_position_embeddings", default=1) else 0


def read_windows(
    reader: ConfigReader, num_layers: int, *, window: int, first: int = 0
) -> list[int]:
    """Return for each layer how far it looks back, 0 where it sees everything.

    ``layer_types`` names the kinds; without it, windows begin at layer ``max_window_layers`` where
    the config asks for them. ``window`` and ``first`` are the family's defaults.
    """
    window = read_window(reader, default=window)
    kinds = reader["layer_types"]
    if kinds is None:
        has_windows = reader.boolean("use_sliding_window", default=False)
        first = reader.integer("max_window_layers", minimum=0, default=first)
        return [window if has_windows and layer >= first else 0 for layer in range(num_layers)]
    known = ("full_attention", "sliding_attention")
    if not (isinstance(kinds, list) and len(kinds) == num_layers):
        reader.refuse("layer_types", spelled(kinds), f"a list of {num_layers} kinds")
        return [0] * num_layers
    strange = [kind for kind in kinds if kind not in known]
    if strange:
        refuse_variant(reader, f"layers of kind {spelled(strange[0])}", f"layers {known}")
    return [window if kind == "sliding_attention" else 0 for kind in kinds]


def check_sizes(reader: ConfigReader, spec: ModelSpec) -> None:
    """Add problems for counts that contradict each other."""
    for attention in dict.fromkeys(spec.attention):
        if isinstance(attention, AttentionSpec):
            _check_heads(reader, attention)
    if spec.top_k > spec.num_experts:
        reader.refuse("num_experts_per_tok", spec.top_k, f"at most {spec.num_experts}")
    num_experts = spec.num_experts * len(spec.moe_layers)
    if num_experts > MAX_EXPERTS:
        reader.refuse("num_experts", num_experts, f"at most {MAX_EXPERTS} in all layers together")


def _check_heads(reader: ConfigReader, attention: AttentionSpec) -> None:
    if attention.num_heads % attention.num_kv_heads:
        expected = f"a divisor of {attention.num_heads}"
        reader.refuse("num_key_value_heads", attention.num_kv_heads, expected)
    if attention.head_dim % 2:
        reader.refuse("head_dim", attention.head_dim, "an even number")
