"""The shapes that calibrated models have, as their publishers' configs state them."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TRACES = Path(__file__).resolve().parents[2] / "resources" / "traces"


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """A model's sizes in the names of its ``config.json``, and whose routing it repeats."""

    name: str
    trace: str
    """A folder of resources/traces."""
    config: Mapping[str, Any]

    @property
    def model_type(self) -> str:
        """The family."""
        return str(self.config["model_type"])

    @property
    def num_layers(self) -> int:
        """Layers, those without experts included."""
        return int(self.config["num_hidden_layers"])

    @property
    def first_moe_layer(self) -> int:
        """Layers before it have no experts."""
        return int(self.config.get("first_k_dense_replace", 0))

    @property
    def num_experts(self) -> int:
        """Routed experts of a layer."""
        names = ("num_experts", "n_routed_experts", "num_local_experts")
        return int(next(self.config[name] for name in names if name in self.config))

    @property
    def expert_width(self) -> int:
        """Rows of an expert's first matrices."""
        return int(self.config.get("moe_intermediate_size", self.config["intermediate_size"]))

    @property
    def hidden(self) -> int:
        """Numbers of the stream."""
        return int(self.config["hidden_size"])

    @property
    def vocabulary(self) -> int:
        """Tokens that the embedding has rows for."""
        return int(self.config["vocab_size"])

    def changed(self, num_layers: int | None = None, vocabulary: int | None = None) -> "Shape":
        """Return the shape with other numbers of layers or tokens."""
        changes = {"num_hidden_layers": num_layers, "vocab_size": vocabulary}
        given = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(self, config={**self.config, **given})


_QWEN3 = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_act": "silu",
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "norm_topk_prob": True,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}
_QWEN3_30B = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_attention_heads": 32,
    "num_hidden_layers": 48,
}
_QWEN3_235B = {
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_attention_heads": 64,
    "num_hidden_layers": 94,
}
_GPT_OSS_20B = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "attention_bias": True,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "max_position_embeddings": 131072,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "quantization_config": {"quant_method": "mxfp4"},
    "rms_norm_eps": 1e-5,
    "rope_scaling": {
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "rope_type": "yarn",
        "truncate": False,
    },
    "rope_theta": 150000,
    "sliding_window": 128,
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
# Positions are not scaled: both sides then turn them alike, and no size changes.
_DEEPSEEK_V2_LITE = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "first_k_dense_replace": 1,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "kv_lora_rank": 512,
    "max_position_embeddings": 4096,
    "moe_intermediate_size": 1408,
    "moe_layer_freq": 1,
    "n_group": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "norm_topk_prob": False,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
    "routed_scaling_factor": 1.0,
    "scoring_func": "softmax",
    "tie_word_embeddings": False,
    "topk_group": 1,
    "topk_method": "greedy",
    "v_head_dim": 128,
    "vocab_size": 102400,
}
SHAPES = {
    shape.name: shape
    for shape in (
        Shape("qwen3-30b-a3b", "qwen3-30b-a3b-code", {**_QWEN3, **_QWEN3_30B}),
        Shape("gpt-oss-20b", "gpt-oss-20b-answers", _GPT_OSS_20B),
        Shape("deepseek-v2-lite", "deepseek-v2-lite-translation", _DEEPSEEK_V2_LITE),
        Shape("qwen3-235b-a22b", "qwen3-30b-a3b-general", {**_QWEN3, **_QWEN3_235B}),
    )
}
"""By name. Of Qwen3-235B no routing is recorded; it has experts as Qwen3-30B has."""
