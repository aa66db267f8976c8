"""The fields that most families' configs spell the same way."""

from typing import TypedDict

from runtime.inspect.config import MAX_LAYERS, ConfigReader
from runtime.inspect.families.rope import read_rope
from runtime.spec.attention import AttentionSpec
from runtime.spec.blocks import NormKind, NormSpec


class Frame(TypedDict):
    """The shared fields of a ``ModelSpec``."""

    hidden_size: int
    num_layers: int
    vocabulary_size: int
    max_context_tokens: int
    norm: NormSpec
    is_tied: bool
    bos_id: int | None


class Heads(TypedDict):
    """The counts of an ``AttentionSpec``."""

    num_heads: int
    num_kv_heads: int
    head_dim: int


def read_frame(
    reader: ConfigReader,
    *,
    norm_eps: float,
    norm_kind: NormKind = NormKind.RMS,
    is_tied: bool = False,
) -> Frame:
    """Read the shared fields; ``norm_eps`` and ``is_tied`` are the family's defaults."""
    return Frame(
        hidden_size=reader.integer("hidden_size", maximum=1 << 20),
        num_layers=reader.integer("num_hidden_layers", maximum=MAX_LAYERS),
        vocabulary_size=reader.integer("vocab_size", maximum=1 << 24),
        max_context_tokens=reader.integer("max_position_embeddings"),
        norm=NormSpec(reader.number("rms_norm_eps", norm_eps), norm_kind),
        is_tied=reader.boolean("tie_word_embeddings", default=is_tied),
        bos_id=next(iter(reader.integers("bos_token_id")), None),
    )


def read_heads(reader: ConfigReader, *, head_dim: int = 0) -> Heads:
    """Read the counts of grouped heads; ``head_dim`` is the family's default, 0: the usual one."""
    hidden_size = reader.integer("hidden_size", maximum=1 << 20)
    num_heads = reader.integer("num_attention_heads", maximum=1 << 16)
    default_dim = head_dim or max(hidden_size // num_heads, 1)
    return Heads(
        num_heads=num_heads,
        num_kv_heads=reader.integer("num_key_value_heads", maximum=1 << 16, default=num_heads),
        head_dim=reader.integer("head_dim", maximum=1 << 16, default=default_dim),
    )


def read_attention(
    reader: ConfigReader,
    *,
    rope_theta: float,
    rope_share: float | None = None,
    has_bias: bool = False,
) -> AttentionSpec:
    """Read grouped heads with rotary positions; other options are the family's to add.

    ``has_bias`` gives each of the four projections one.
    """
    heads = read_heads(reader)
    rope = read_rope(reader, heads["head_dim"], rope_theta, share=rope_share)
    return AttentionSpec(**heads, rope=rope, has_qkv_bias=has_bias, has_output_bias=has_bias)
