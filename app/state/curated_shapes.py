"""The shapes of the models that *Discover* shows without a network, for forecasts of them.

Facts of the published models, under the names that their configs have; only what sizes follow from.
"""

from collections.abc import Mapping

Shape = dict[str, object]


def _shape(
    model_type: str, layers: int, hidden: int, words: int, context: int, **other: object
) -> Shape:
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "vocab_size": words,
        "max_position_embeddings": context,
        "tie_word_embeddings": False,
        "rms_norm_eps": 1e-5,
        **other,
    }


def _heads(num: int, num_kv: int, head_dim: int = 0) -> dict[str, int]:
    own = {"num_attention_heads": num, "num_key_value_heads": num_kv}
    return {**own, "head_dim": head_dim} if head_dim else own


def _granite(layers: int, hidden: int, num_experts: int, heads: int) -> Shape:
    return _shape(
        "granitemoe",
        layers,
        hidden,
        49_155,
        131_072,
        **_heads(heads, 8),
        num_local_experts=num_experts,
        num_experts_per_tok=8,
        intermediate_size=512,
    ) | {"tie_word_embeddings": True}


def _gpt_oss(layers: int, num_experts: int) -> Shape:
    return _shape(
        "gpt_oss",
        layers,
        2880,
        201_088,
        131_072,
        **_heads(64, 8, 64),
        num_local_experts=num_experts,
        num_experts_per_tok=4,
        intermediate_size=2880,
        sliding_window=128,
    ) | {"quantization_config": {"quant_method": "mxfp4"}}


def _qwen3(layers: int, hidden: int, heads: int, dense: int, width: int) -> Shape:
    return _shape(
        "qwen3_moe",
        layers,
        hidden,
        151_936,
        40_960,
        **_heads(heads, 4, 128),
        num_experts=128,
        num_experts_per_tok=8,
        intermediate_size=dense,
        moe_intermediate_size=width,
        norm_topk_prob=True,
    )


SHAPES: Mapping[str, Shape] = {
    "ibm-granite/granite-3.1-1b-a400m-instruct": _granite(24, 1024, 32, 16),
    "ibm-granite/granite-3.1-3b-a800m-instruct": _granite(32, 1536, 40, 24),
    "allenai/OLMoE-1B-7B-0125-Instruct": _shape(
        "olmoe",
        16,
        2048,
        50_304,
        4096,
        **_heads(16, 16),
        num_experts=64,
        num_experts_per_tok=8,
        intermediate_size=1024,
    ),
    "openai/gpt-oss-20b": _gpt_oss(24, 32),
    "openai/gpt-oss-120b": _gpt_oss(36, 128),
    "deepseek-ai/DeepSeek-V2-Lite-Chat": _shape(
        "deepseek_v2",
        27,
        2048,
        102_400,
        163_840,
        **_heads(16, 16),
        kv_lora_rank=512,
        q_lora_rank=0,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        first_k_dense_replace=1,
        intermediate_size=10_944,
        moe_intermediate_size=1408,
    )
    | {"topk_method": "greedy"},
    "baidu/ERNIE-4.5-21B-A3B-PT": _shape(
        "ernie4_5_moe",
        28,
        2560,
        103_424,
        131_072,
        **_heads(20, 4),
        moe_num_experts=64,
        moe_num_shared_experts=2,
        moe_k=6,
        moe_layer_start_index=1,
        moe_layer_end_index=27,
        moe_layer_interval=1,
        intermediate_size=12_288,
        moe_intermediate_size=1536,
        use_bias=False,
    )
    | {"tie_word_embeddings": True},
    "zai-org/GLM-4.7-Flash": _shape(
        "glm4_moe_lite",
        47,
        2048,
        154_880,
        202_752,
        **_heads(20, 20),
        kv_lora_rank=512,
        q_lora_rank=768,
        qk_nope_head_dim=192,
        qk_rope_head_dim=64,
        v_head_dim=256,
        n_routed_experts=64,
        n_shared_experts=1,
        num_experts_per_tok=4,
        first_k_dense_replace=1,
        intermediate_size=10_240,
        moe_intermediate_size=1536,
    ),
    "Qwen/Qwen3-30B-A3B": _qwen3(48, 2048, 32, 6144, 768),
    "Qwen/Qwen3-235B-A22B": _qwen3(94, 4096, 64, 12_288, 1536),
    "microsoft/Phi-3.5-MoE-instruct": _shape(
        "phimoe",
        32,
        4096,
        32_064,
        131_072,
        **_heads(32, 8),
        num_local_experts=16,
        num_experts_per_tok=2,
        intermediate_size=6400,
        attention_bias=True,
        lm_head_bias=True,
    ),
    "zai-org/GLM-4.5-Air": _shape(
        "glm4_moe",
        46,
        4096,
        151_552,
        131_072,
        **_heads(96, 8, 128),
        n_routed_experts=128,
        n_shared_experts=1,
        num_experts_per_tok=8,
        first_k_dense_replace=1,
        intermediate_size=10_944,
        moe_intermediate_size=1408,
        attention_bias=True,
        norm_topk_prob=True,
    ),
}
"""By the name of the model whose config has them."""
