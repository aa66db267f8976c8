"""The attention of one layer: its heads, its options, and what it keeps of each position."""

import dataclasses
import enum

from runtime.spec.rope import RopeSpec


@dataclasses.dataclass(frozen=True, slots=True)
class KvShape:
    """What one layer keeps of a position: ``num_heads`` rows of ``head_dim`` channels.

    There is one such block of keys and one of values, or, if ``is_shared``, one block that is
    both.
    """

    num_heads: int
    head_dim: int
    is_shared: bool = False

    @property
    def num_channels(self) -> int:
        """Numbers that are stored for each position."""
        return self.num_heads * self.head_dim * (1 if self.is_shared else 2)


class QkNorm(enum.StrEnum):
    """How queries and keys are normalised before they are turned."""

    NONE = "none"
    HEAD = "head"
    """Each head for itself, all with the same weights."""
    WHOLE = "whole"
    """All heads of a projection together."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpec:
    """Attention with grouped heads: several query heads share one head of keys and values."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope: RopeSpec | None
    """None: positions are not told apart."""
    window: int = 0
    """0: every position is seen; else the last so many, the own one among them."""
    scale: float = 0.0
    """What scores are multiplied with; 0: one over the root of ``head_dim``."""
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    has_sinks: bool = False
    """Each query head has one more score that takes its share of the weights and gives nothing."""
    has_value_matrix: bool = True
    """Without it, values are what keys are before they are normalised and turned."""
    has_value_norm: bool = False
    """Each head's values are divided by the root of their mean square."""

    @property
    def score_scale(self) -> float:
        """What scores are multiplied with."""
        return self.scale or self.head_dim**-0.5

    @property
    def kv(self) -> KvShape:
        """What is kept of a position."""
        return KvShape(self.num_kv_heads, self.head_dim)

    @property
    def num_work_channels(self) -> int:
        """Numbers that are computed for each position: queries, keys and values."""
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttentionSpec:
    """Attention whose keys and values of all heads come from one latent row of each position.

    Kept is the latent row, with the turned part of the key behind it; heads are expanded on the
    side of the queries.
    """

    num_heads: int
    latent_dim: int
    plain_dim: int
    """Channels of a head's query and key that are not turned."""
    rope_dim: int
    """Channels that are turned; keys share them over all heads."""
    value_dim: int
    query_dim: int
    """Width of the latent query; 0: queries are projected directly."""
    rope: RopeSpec
    scale: float
    norm_eps: float
    """Epsilon of the norms over the latent rows."""
    has_bias: bool = False

    @property
    def kv(self) -> KvShape:
        """What is kept of a position."""
        return KvShape(1, self.latent_dim + self.rope_dim, is_shared=True)

    @property
    def num_work_channels(self) -> int:
        """Numbers that are computed for each position: queries, expanded and mixed, and a key."""
        per_head = self.plain_dim + 2 * self.rope_dim + 2 * self.latent_dim + self.value_dim
        return self.num_heads * per_head + self.query_dim + 2 * (self.latent_dim + self.rope_dim)


AnyAttention = AttentionSpec | LatentAttentionSpec
