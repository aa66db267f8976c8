"""Parts of architectures for tests that need a spec and no checkpoint."""

from runtime.spec.attention import AttentionSpec
from runtime.spec.rope import RopeSpec


def grouped_attention(
    num_layers: int, num_heads: int, num_kv_heads: int, head_dim: int, theta: float = 10000.0
) -> tuple[AttentionSpec, ...]:
    """The same plain attention in every layer."""
    attention = AttentionSpec(
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rope=RopeSpec(theta, head_dim),
    )
    return (attention,) * num_layers
