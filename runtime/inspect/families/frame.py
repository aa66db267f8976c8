"""The fields that every family's config spells the same way."""

from typing import TypedDict

from runtime.inspect.config import MAX_LAYERS, ConfigReader
from runtime.inspect.families.base import check_activation, read_rope_theta


class Frame(TypedDict):
    """The shared fields of a ``ModelSpec``."""

    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocabulary_size: int
    max_context_tokens: int
    rms_eps: float
    rope_theta: float
    is_tied: bool
    bos_id: int | None


def read_frame(reader: ConfigReader, *, rms_eps: float, rope_theta: float) -> Frame:
    """Read the shared fields; ``rms_eps`` and ``rope_theta`` are the family's defaults."""
    check_activation(reader)
    hidden_size = reader.integer("hidden_size", maximum=1 << 20)
    num_heads = reader.integer("num_attention_heads", maximum=1 << 16)
    num_kv_heads = reader.integer("num_key_value_heads", maximum=1 << 16, default=num_heads)
    default_dim = hidden_size // num_heads
    head_dim = reader.integer("head_dim", maximum=1 << 16, default=max(default_dim, 1))
    return Frame(
        hidden_size=hidden_size,
        num_layers=reader.integer("num_hidden_layers", maximum=MAX_LAYERS),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        vocabulary_size=reader.integer("vocab_size", maximum=1 << 24),
        max_context_tokens=reader.integer("max_position_embeddings"),
        rms_eps=reader.number("rms_norm_eps", rms_eps),
        rope_theta=read_rope_theta(reader, rope_theta),
        is_tied=reader.boolean("tie_word_embeddings", default=False),
        bos_id=next(iter(reader.integers("bos_token_id")), None),
    )
