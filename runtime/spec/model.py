"""What a model is made of, independent of where its weights lie."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """The architecture of one checkpoint, normalised from its ``config.json``.

    Widths are numbers of channels. Layers with index in ``moe_layers`` have routed experts, the
    others one dense feed-forward block of ``dense_width``.
    """

    model_type: str
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocabulary_size: int
    max_context_tokens: int
    rms_eps: float
    rope_theta: float
    sliding_window: int = 0
    """0: every position is seen."""
    has_qkv_bias: bool = False
    has_qk_norm: bool = False
    is_tied: bool = False
    """The output matrix is the embedding."""
    moe_layers: tuple[int, ...] = ()
    num_experts: int = 0
    top_k: int = 0
    expert_width: int = 0
    shared_width: int = 0
    """0: no shared expert."""
    dense_width: int = 0
    is_topk_normalised: bool = True
    """The weights of the chosen experts are divided by their sum."""
    eos_ids: tuple[int, ...] = ()
    bos_id: int | None = None
