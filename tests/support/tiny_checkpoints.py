"""Small random checkpoints of every supported family, as a publisher would write them.

``tiny_checkpoint`` makes a Hugging Face folder by transformers (config, safetensors, tokenizer with
chat template, generation config) once per test session. Transformers is imported only when a folder
is made or its reference asked for.
"""

import dataclasses
import functools
import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

IM_START, IM_END, PAD = "<|im_start|>", "<|im_end|>", "<|pad|>"
VOCABULARY_SIZE = 320

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_LINES = (
    "The larder holds what the kitchen needs tomorrow.",
    "What is the capital of France? The capital of France is Paris.",
    "user assistant system and then the answer, one token after another",
    "Experts lie on the counter, in the larder and in the cellar.",
    "Süße Äpfel, crème brûlée, 東京, naïve café",
)


@dataclasses.dataclass(frozen=True)
class TinyVariant:
    """One checkpoint to make: a name, the model type, and what differs from the family's base."""

    name: str
    model_type: str
    changes: tuple[tuple[str, Any], ...] = ()
    stored_dtype: str = "float32"


_BASE: dict[str, dict[str, Any]] = {
    "qwen2_moe": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_experts": 6,
        "num_experts_per_tok": 3,
        "intermediate_size": 80,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 48,
        "norm_topk_prob": False,
        "tie_word_embeddings": False,
        "mlp_only_layers": [],
    },
    "qwen3_moe": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "norm_topk_prob": True,
        "tie_word_embeddings": False,
        "mlp_only_layers": [],
        "rope_theta": 1_000_000.0,
    },
    "mixtral": {
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "intermediate_size": 64,
        "tie_word_embeddings": False,
        "sliding_window": None,
    },
    "olmoe": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "intermediate_size": 32,
        "norm_topk_prob": False,
    },
    "granitemoe": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_local_experts": 6,
        "num_experts_per_tok": 2,
        "intermediate_size": 32,
        "tie_word_embeddings": True,
        "attention_multiplier": 0.2,
        "embedding_multiplier": 3.0,
        "logits_scaling": 1.5,
        "residual_multiplier": 0.7,
    },
    "phimoe": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_local_experts": 6,
        "num_experts_per_tok": 2,
        "intermediate_size": 32,
        "attention_bias": True,
        "lm_head_bias": True,
        "router_jitter_noise": 0.1,
    },
    "llama": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "qwen3": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "intermediate_size": 96,
        "tie_word_embeddings": True,
    },
    "deepseek_v2": {
        "num_attention_heads": 4,
        "kv_lora_rank": 24,
        "q_lora_rank": None,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "n_routed_experts": 8,
        "n_shared_experts": 2,
        "num_experts_per_tok": 3,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
    },
    "deepseek_v3": {
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "kv_lora_rank": 24,
        "q_lora_rank": 40,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "n_routed_experts": 16,
        "n_group": 4,
        "topk_group": 2,
        "num_experts_per_tok": 4,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "num_mtp_layers": 0,
    },
    "glm4_moe_lite": {
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "kv_lora_rank": 24,
        "q_lora_rank": 40,
        "qk_nope_head_dim": 24,
        "qk_rope_head_dim": 8,
        "v_head_dim": 32,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
    },
    "gpt_oss": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
        "intermediate_size": 32,
        "sliding_window": 12,
        "swiglu_limit": 2.0,
    },
    "glm4_moe": {
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "n_routed_experts": 8,
        "n_group": 4,
        "topk_group": 2,
        "num_experts_per_tok": 3,
        "routed_scaling_factor": 2.5,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "attention_bias": True,
        "use_qk_norm": True,
        "num_mtp_layers": 0,
    },
    "minimax_m2": {
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rotary_dim": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
        "intermediate_size": 32,
    },
    "ernie4_5_moe": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "moe_num_experts": 8,
        "moe_k": 3,
        "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "tie_word_embeddings": True,
    },
    "gemma4_text": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 16,
        "global_head_dim": 32,
        "attention_k_eq_v": True,
        "enable_moe_block": True,
        "num_experts": 8,
        "top_k_experts": 3,
        "intermediate_size": 48,
        "moe_intermediate_size": 32,
        "hidden_size_per_layer_input": 0,
        "sliding_window": 11,
        "final_logit_softcapping": 4.0,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    },
}
"""What a family's tiny configs have beside the common values of ``_config``."""
_BASE["gemma4"] = _BASE["gemma4_text"]
_BASE["qwen3_vl_moe"] = {**_BASE["qwen3_moe"], "moe_intermediate_size": 24}
_SIGHT: dict[str, dict[str, Any]] = {
    "gemma4": {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "position_embedding_size": 16,
    },
    "qwen3_vl_moe": {
        "depth": 1,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_heads": 2,
        "out_hidden_size": 64,
        "deepstack_visual_indexes": [0],
        "num_position_embeddings": 16,
    },
}
"""Families whose checkpoints also see, with the smallest eyes."""
_YARN_LATENT = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 40.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 0.707,
    "mscale_all_dim": 0.9,
}
"""As DeepSeek spells it; the two weights differ so that each of them counts."""
_LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.02, 1.1, 1.3, 1.5, 2.0, 2.5, 3.0],
    "long_factor": [1.1, 1.3, 1.9, 2.7, 4.0, 8.0, 12.0, 20.0],
    "short_mscale": 1.2,
    "long_mscale": 1.2,
    "original_max_position_embeddings": 256,
}
"""As phimoe spells it, for contexts that count as short."""
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}

VARIANTS = {
    variant.name: variant
    for variant in (
        TinyVariant("qwen2_moe", "qwen2_moe"),
        TinyVariant(
            "qwen2_moe_tied_dense_layer",
            "qwen2_moe",
            (
                ("tie_word_embeddings", True),
                ("mlp_only_layers", [0]),
                ("norm_topk_prob", True),
                ("qkv_bias", False),
            ),
        ),
        TinyVariant("qwen3_moe", "qwen3_moe"),
        TinyVariant(
            "qwen3_moe_sparse_step_bf16",
            "qwen3_moe",
            (
                ("decoder_sparse_step", 2),
                ("norm_topk_prob", False),
                ("tie_word_embeddings", True),
                ("num_key_value_heads", 4),
            ),
            "bfloat16",
        ),
        TinyVariant("mixtral", "mixtral"),
        TinyVariant("mixtral_window_f16", "mixtral", (("sliding_window", 12),), "float16"),
        TinyVariant("olmoe", "olmoe"),
        TinyVariant("olmoe_yarn_bf16", "olmoe", (("rope_parameters", _YARN),), "bfloat16"),
        TinyVariant("granitemoe", "granitemoe"),
        TinyVariant(
            "granitemoe_untied_bf16",
            "granitemoe",
            (("tie_word_embeddings", False), ("attention_bias", True)),
            "bfloat16",
        ),
        TinyVariant("phimoe", "phimoe", (("rope_parameters", _LONG_ROPE),)),
        TinyVariant("phimoe_window", "phimoe", (("sliding_window", 15),)),
        TinyVariant("llama", "llama"),
        TinyVariant(
            "llama_biased_linear",
            "llama",
            (
                ("attention_bias", True),
                ("rope_parameters", {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}),
            ),
        ),
        TinyVariant("qwen3", "qwen3"),
        TinyVariant(
            "qwen3_windows",
            "qwen3",
            (
                ("use_sliding_window", True),
                ("sliding_window", 9),
                ("max_window_layers", 1),
            ),
        ),
        TinyVariant("deepseek_v2", "deepseek_v2", (("rope_parameters", _YARN_LATENT),)),
        TinyVariant(
            "deepseek_v2_groups_bf16",
            "deepseek_v2",
            (
                ("q_lora_rank", 40),
                ("topk_method", "group_limited_greedy"),
                ("n_group", 4),
                ("topk_group", 2),
                ("routed_scaling_factor", 2.5),
                ("attention_bias", True),
            ),
            "bfloat16",
        ),
        TinyVariant("deepseek_v3", "deepseek_v3", (("rope_parameters", _YARN_LATENT),)),
        TinyVariant(
            "deepseek_v3_halves_bf16",
            "deepseek_v3",
            (
                ("rope_interleave", False),
                ("n_group", 1),
                ("topk_group", 1),
                ("norm_topk_prob", False),
                ("q_lora_rank", None),
            ),
            "bfloat16",
        ),
        TinyVariant("glm4_moe_lite", "glm4_moe_lite"),
        TinyVariant("glm4_moe", "glm4_moe"),
        TinyVariant(
            "glm4_moe_plain_bf16",
            "glm4_moe",
            (
                ("attention_bias", False),
                ("use_qk_norm", False),
                ("n_group", 1),
                ("topk_group", 1),
                ("norm_topk_prob", False),
                ("first_k_dense_replace", 0),
                ("n_shared_experts", 2),
            ),
            "bfloat16",
        ),
        TinyVariant("minimax_m2", "minimax_m2"),
        TinyVariant("minimax_m2_whole_rope_f16", "minimax_m2", (("rotary_dim", 16),), "float16"),
        TinyVariant("ernie4_5_moe", "ernie4_5_moe"),
        TinyVariant(
            "ernie4_5_moe_interval_bf16",
            "ernie4_5_moe",
            (
                ("moe_layer_start_index", 0),
                ("moe_layer_end_index", 1),
                ("moe_layer_interval", 2),
                ("moe_num_shared_experts", 0),
                ("tie_word_embeddings", False),
            ),
            "bfloat16",
        ),
        TinyVariant("gemma4_text", "gemma4_text"),
        TinyVariant(
            "gemma4_text_biased_bf16",
            "gemma4_text",
            (
                ("attention_k_eq_v", False),
                ("attention_bias", True),
                ("final_logit_softcapping", None),
                ("tie_word_embeddings", False),
            ),
            "bfloat16",
        ),
        TinyVariant("gemma4_text_dense", "gemma4_text", (("enable_moe_block", False),)),
        TinyVariant("gemma4", "gemma4"),
        TinyVariant("qwen3_vl_moe", "qwen3_vl_moe"),
        TinyVariant("gpt_oss", "gpt_oss"),
        TinyVariant(
            "gpt_oss_unbiased_yarn_bf16",
            "gpt_oss",
            (
                ("attention_bias", False),
                ("rope_parameters", {**_YARN, "truncate": False}),
                ("layer_types", ["full_attention", "sliding_attention", "full_attention"]),
                ("swiglu_alpha", 1.5),
            ),
            "bfloat16",
        ),
    )
}
"""Between them: ties, dense layers of both kinds, shared experts, wide heads, grouped heads,
biases, windows, and every plain stored format."""


@functools.cache
def tiny_checkpoint(root: Path, name: str, num_layers: int = 3, seed: int = 0) -> Path:
    """Return the folder of a variant below ``root``, made at the first call."""
    import torch

    transformers = _transformers()
    variant = VARIANTS[name]
    folder = root / (f"{name}-{num_layers}-{seed}" if seed else f"{name}-{num_layers}")
    model = _class_of(variant.model_type).from_config(_config(variant, num_layers))
    _randomise(model, seed=seed + sum(map(ord, name)))
    model = model.to(getattr(torch, variant.stored_dtype))
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=0, eos_token_id=1, do_sample=True, temperature=0.7
    )
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return folder


def reference_model(folder: Path) -> Any:
    """Return transformers' own model of a folder, in fp32, ready to compute."""
    import torch

    model_type = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    model = _class_of(model_type).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


def _class_of(model_type: str) -> Any:
    """Return the class that makes models of a type."""
    transformers = _transformers()
    if model_type in _SIGHT:
        return transformers.AutoModelForImageTextToText
    return transformers.AutoModelForCausalLM


def _transformers() -> Any:
    """Return the library, which is big and of which only this file knows."""
    return importlib.import_module("transformers")


def write_tokenizer(folder: Path) -> None:
    """Write a small byte-level tokenizer with a chat template into a folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[IM_START, IM_END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_LINES, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "bos_token": IM_START,
        "chat_template": CHAT_TEMPLATE,
        "eos_token": IM_END,
        "pad_token": PAD,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _config(variant: TinyVariant, num_layers: int) -> Any:
    """Return transformers' configuration of a variant."""
    values = {
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": 64,
        "num_hidden_layers": num_layers,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        **_BASE[variant.model_type],
        **dict(variant.changes),
    }
    make = _transformers().AutoConfig.for_model
    sight = _SIGHT.get(variant.model_type)
    if sight is None:
        return make(variant.model_type, **values)
    ties = values.get("tie_word_embeddings", True)
    return make(
        variant.model_type, text_config=values, vision_config=sight, tie_word_embeddings=ties
    )


def _randomise(model: "torch.nn.Module", seed: int) -> None:
    """Give every parameter values of the size that trained ones have, norms and biases included."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("bias"):
                parameter.copy_(0.3 * noise)
            elif parameter.ndim == 1:
                parameter.copy_(1.0 + 0.2 * noise)
            elif "embed_tokens" in name:
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(1.5 * noise / parameter.shape[-1] ** 0.5)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.3 * torch.randn(buffer.shape, generator=generator))
            elif name.endswith("layer_scalar"):
                buffer.copy_(1.0 + 0.2 * torch.randn(buffer.shape, generator=generator))
