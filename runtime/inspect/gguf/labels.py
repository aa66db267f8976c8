"""What the names of GGUF files say of the numbers in them; their headers alone say it surely."""

import re

from runtime.protocol.values import WeightFormat
from runtime.spec.gguf import PLAIN, GgufKind

_LABEL = re.compile(
    r"(?<![A-Z0-9])(?:UD[-_])?"
    r"(?:IQ\d_(?:XXS|XS|S|M|NL)|Q\d_K(?:_(?:XXL|XL|XS|S|M|L))?|Q\d_[01](?:_(?:XL|L|S))?"
    r"|TQ\d_0|MXFP4(?:_MOE)?|NVFP4|BF16|FP?16|FP?32)(?![A-Z0-9_])",
    re.IGNORECASE,
)
_SIZE = re.compile(r"_(?:XXL|XL|XS|S|M|L|MOE)$")
_OTHER_NAMES = {"FP16": "F16", "FP32": "F32", "Q8_K": "Q8_0"}
_BITS = {
    "IQ1_S": 1.6, "IQ1_M": 1.8, "TQ1_0": 1.7, "TQ2_0": 2.1, "IQ2_XXS": 2.1, "IQ2_XS": 2.3,
    "IQ2_S": 2.5, "IQ2_M": 2.7, "IQ3_XXS": 3.1, "IQ3_XS": 3.3, "IQ3_S": 3.4, "IQ3_M": 3.7,
    "NVFP4": 4.5,
}  # fmt: skip
"""About so many bits have weights of kinds that are not read."""
_MIXED_RATIO = 1.075
"""Files of K kinds keep some matrices in a larger kind, and are so much longer for it."""
_EVEN = frozenset({*PLAIN, GgufKind.Q4_0, GgufKind.Q8_0, GgufKind.MXFP4})
"""Kinds that all experts of a file have, if it is named after them."""
_OF_SMALL_BLOCKS = {
    GgufKind.Q4_K: GgufKind.Q5_0,
    GgufKind.Q5_K: GgufKind.Q5_1,
    GgufKind.Q6_K: GgufKind.Q8_0,
}
"""What usual converters take where rows are not whole blocks; of others it is IQ4_NL."""


def label_of(name: str) -> str:
    """Return what a file's name calls its numbers, as in ``Q4_K_M``; empty if it does not."""
    found = [match[0] for match in _LABEL.finditer(name)]
    return found[-1].upper() if found else ""


def kind_of(label: str) -> GgufKind | None:
    """Return the kind that most matrices of a file have; None for one that is not read."""
    return GgufKind.__members__.get(_base(label))


def is_readable(label: str) -> bool:
    """Whether files with such a name can be read, as far as names tell."""
    return not label or kind_of(label) is not None


def bits_of(label: str) -> float:
    """Return about how many bits one weight takes; 0 where the name does not tell."""
    kind = kind_of(label)
    if kind is None:
        bare = label.removeprefix("UD-").removeprefix("UD_")
        return _BITS.get(bare, 0.0)
    bits = kind.block_bytes * 8 / kind.block_columns
    return bits if kind in _EVEN else bits * _MIXED_RATIO


def expert_kinds(
    label: str, layer: int, num_layers: int, hidden_size: int, expert_width: int
) -> tuple[GgufKind, ...]:
    """Return the kinds of gate, up and down that a layer of such a file has, which can be read.

    Usual converters give some of what leads down another kind than gate and up, and every matrix
    one of smaller blocks if its rows are not whole ones; other mixtures of the same name come near
    to it.
    """
    kind = kind_of(label)
    assert kind is not None, label
    inner = _in_whole_blocks(kind, hidden_size)
    down = _kind_of_down(label, kind, layer, num_layers)
    return inner, inner, _in_whole_blocks(down, expert_width)


def _in_whole_blocks(kind: GgufKind, columns: int) -> GgufKind:
    """Return the kind that rows have which were to have another one."""
    if not columns % kind.block_columns:
        return kind
    smaller = _OF_SMALL_BLOCKS.get(kind, GgufKind.IQ4_NL)
    return GgufKind.F16 if columns % smaller.block_columns else smaller


def _kind_of_down(label: str, kind: GgufKind, layer: int, num_layers: int) -> GgufKind:
    edge, size = num_layers // 8, label.upper().rpartition("_")[2]
    if kind is GgufKind.Q4_K and size == "S":
        return GgufKind.Q5_K if layer < edge else kind
    if kind in (GgufKind.Q4_K, GgufKind.Q5_K) and size != "S":
        has_more = layer < edge or layer >= 7 * num_layers // 8 or (layer - edge) % 3 == 2
        return GgufKind.Q6_K if has_more else kind
    if kind is GgufKind.Q3_K and size in ("K", "M"):
        return GgufKind.Q5_K if layer < num_layers // 16 else GgufKind.Q4_K
    return kind


def dense_home(label: str, *, is_plain: bool) -> WeightFormat:
    """Return the format of most dense matrices; plain where they become f16."""
    kind = kind_of(label)
    if kind is not None and kind in PLAIN:
        return PLAIN[kind]
    return WeightFormat.F16 if is_plain else WeightFormat.Q8_G32


def _base(label: str) -> str:
    bare = label.upper().removeprefix("UD-").removeprefix("UD_")
    bare = bare if bare in GgufKind.__members__ else _SIZE.sub("", bare)
    return _OTHER_NAMES.get(bare, bare)
