"""Rotary positions as configs spell them, in the older way and in the newer."""

import math
from collections.abc import Callable, Mapping

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import refuse_variant
from runtime.spec.rope import (
    LinearScaling,
    Llama3Scaling,
    LongScaling,
    ProportionalScaling,
    RopeScaling,
    RopeSpec,
    YarnScaling,
)

_PLAIN = ("default", "dynamic", "mrope")
"""Kinds that are plain rope here: dynamic scaling changes nothing within the stated context, and
of the positions in pictures and in text, text has one alone."""


def read_rope(
    reader: ConfigReader, head_dim: int, theta: float, *, share: float | None = None
) -> RopeSpec:
    """Return the rotary positions of a config that has one kind for all layers.

    ``theta`` and ``share`` are the family's defaults; without a ``share``, heads are turned whole.
    What is not computed here is refused by its name.
    """
    table = {**reader.table("rope_scaling"), **reader.table("rope_parameters")}
    if any(isinstance(value, dict) for value in table.values()):
        refuse_variant(reader, "one rope for each kind of layer", "one rope for all")
    table.setdefault("rope_theta", reader["rope_theta"])
    table.setdefault("partial_rotary_factor", reader["partial_rotary_factor"])
    return rope_of(reader, table, head_dim, theta, share=share)


def rope_of(
    reader: ConfigReader,
    table: Mapping[str, object],
    head_dim: int,
    theta: float,
    *,
    share: float | None = None,
) -> RopeSpec:
    """Return the rotary positions that one table describes; problems go to ``reader``."""
    nested = ConfigReader(table, reader.file)
    base = nested.number("rope_theta", theta)
    may_be_partial = share is not None
    share = nested.number("partial_rotary_factor", share or 1.0)
    kind = table.get("rope_type") or table.get("type") or "default"
    num_channels = head_dim
    scaling: RopeScaling | None = None
    if kind == "proportional":
        scaling = ProportionalScaling(min(share, 1.0), nested.number("factor", 1.0))
    elif share != 1.0 and not may_be_partial:
        refuse_variant(reader, f"partial rope {spelled(share)}", "rope of whole heads")
    else:
        num_channels = int(head_dim * min(share, 1.0)) // 2 * 2
        if isinstance(kind, str) and kind in _SCALINGS:
            scaling = _SCALINGS[kind](reader, nested, num_channels)
        elif kind not in _PLAIN:
            known = ", ".join(sorted((*_PLAIN, *_SCALINGS)))
            refuse_variant(reader, f"rope scaling {spelled(kind)}", f"rope scaling {known}")
    reader.problems.extend(nested.problems)
    return RopeSpec(base, max(num_channels, 2), scaling)


def yarn_magnitude(factor: float, weight: float = 1.0) -> float:
    """Return by how much scores grow where the context is stretched by ``factor``."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _original_tokens(reader: ConfigReader, nested: ConfigReader) -> int:
    name = "original_max_position_embeddings"
    stated = reader.integer(name, "max_position_embeddings")
    return nested.integer(name, default=stated)


def _stretch(reader: ConfigReader, nested: ConfigReader, original_tokens: int) -> float:
    """Return the factor between the stated context and the original one."""
    stated = reader.integer("max_position_embeddings")
    return nested.number("factor", stated / original_tokens)


def _linear(reader: ConfigReader, nested: ConfigReader, num_channels: int) -> RopeScaling:
    del reader, num_channels
    return LinearScaling(_required(nested, "factor"))


def _llama3(reader: ConfigReader, nested: ConfigReader, num_channels: int) -> RopeScaling:
    del num_channels
    low, high = _required(nested, "low_freq_factor"), _required(nested, "high_freq_factor")
    if high <= low:
        nested.refuse("high_freq_factor", high, f"more than {low}")
        high = low + 1
    return Llama3Scaling(_required(nested, "factor"), low, high, _original_tokens(reader, nested))


def _yarn(reader: ConfigReader, nested: ConfigReader, num_channels: int) -> RopeScaling:
    del num_channels
    original = _original_tokens(reader, nested)
    factor = _stretch(reader, nested, original)
    weight, weight_all = nested["mscale"], nested["mscale_all_dim"]
    inferred = yarn_magnitude(factor)
    if weight and weight_all:
        inferred = yarn_magnitude(factor, nested.number("mscale", 1.0))
        inferred /= yarn_magnitude(factor, nested.number("mscale_all_dim", 1.0))
    return YarnScaling(
        factor,
        original,
        nested.number("attention_factor", inferred),
        nested.number("beta_fast", 32.0),
        nested.number("beta_slow", 1.0),
        nested.boolean("truncate", default=True),
    )


def _long(reader: ConfigReader, nested: ConfigReader, num_channels: int) -> RopeScaling:
    original = _original_tokens(reader, nested)
    factor = _stretch(reader, nested, original)
    inferred = 1.0
    if factor > 1 and original > 1:
        inferred = math.sqrt(1 + math.log(factor) / math.log(original))
    magnitude = nested.number("attention_factor", inferred)
    return LongScaling(
        nested.numbers("short_factor", num_channels // 2),
        nested.numbers("long_factor", num_channels // 2),
        original,
        nested.number("short_mscale", magnitude),
        nested.number("long_mscale", magnitude),
    )


_SCALINGS: Mapping[str, Callable[[ConfigReader, ConfigReader, int], RopeScaling]] = {
    "linear": _linear,
    "llama3": _llama3,
    "longrope": _long,
    "su": _long,
    "yarn": _yarn,
}


def _required(nested: ConfigReader, name: str) -> float:
    """Return a number that has no default."""
    if nested[name] is None:
        nested.refuse(name, None, "a number above 0")
    return nested.number(name, 1.0)
