"""Headers of GGUF models of every architecture, as their converters write them; data is zeros."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES
from runtime.inspect.folder import inspect_folder
from runtime.inspect.gguf.names import GATE_UP_BIAS, KV_B, layer_of, stored_names
from runtime.inspect.inspection import Inspection
from runtime.protocol.errors import ErrorReport
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertPart
from tests.support.gguf_files import Declared, vocabulary_values, write_gguf

COMMON: dict[str, Any] = {
    "block_count": 2,
    "context_length": 512,
    "embedding_length": 64,
    "feed_forward_length": 96,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 10_000.0,
}
MIXTURE: dict[str, Any] = {
    **COMMON,
    "expert_count": 4,
    "expert_used_count": 2,
    "expert_feed_forward_length": 32,
}
LATENT: dict[str, Any] = {
    **MIXTURE,
    "attention.head_count_kv": 1,
    "attention.kv_lora_rank": 32,
    "attention.key_length": 40,
    "attention.value_length": 32,
    "attention.key_length_mla": 24,
    "attention.value_length_mla": 16,
    "rope.dimension_count": 8,
    "leading_dense_block_count": 1,
    "expert_shared_count": 1,
    "expert_weights_scale": 2.5,
}
HF: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 272,
    "max_position_embeddings": 512,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "bos_token_id": 256,
    "tie_word_embeddings": False,
}
HF_LATENT: dict[str, Any] = {
    **HF,
    "kv_lora_rank": 32,
    "q_lora_rank": None,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "routed_scaling_factor": 2.5,
}
MODELS: Mapping[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("llama", COMMON, HF),
    "qwen3": ("qwen3", {**COMMON, "attention.key_length": 16}, {**HF, "head_dim": 16}),
    "mixtral": ("llama", {**MIXTURE, "feed_forward_length": 32}, {**HF, "intermediate_size": 32}),
    "qwen3_moe": (
        "qwen3moe",
        {**MIXTURE, "attention.key_length": 16},
        {**HF, "head_dim": 16, "norm_topk_prob": True},
    ),
    "qwen2_moe": (
        "qwen2moe",
        {**MIXTURE, "expert_shared_feed_forward_length": 48},
        {**HF, "shared_expert_intermediate_size": 48},
    ),
    "olmoe": (
        "olmoe",
        {**COMMON, "expert_count": 4, "expert_used_count": 2},
        {**HF, "intermediate_size": 32},
    ),
    "granitemoe": (
        "granitemoe",
        {
            **MIXTURE,
            "attention.scale": 0.25,
            "embedding_scale": 12.0,
            "residual_scale": 0.5,
            "logit_scale": 6.0,
        },
        {
            **HF,
            "intermediate_size": 32,
            "attention_multiplier": 0.25,
            "embedding_multiplier": 12.0,
            "residual_multiplier": 0.5,
            "logits_scaling": 6.0,
        },
    ),
    "phimoe": (
        "phimoe",
        MIXTURE,
        {**HF, "intermediate_size": 32, "lm_head_bias": True, "attention_bias": True},
    ),
    "deepseek_v2": ("deepseek2", LATENT, HF_LATENT),
    "deepseek_v3": (
        "deepseek2",
        {**LATENT, "expert_gating_func": 2, "expert_weights_norm": True},
        HF_LATENT,
    ),
    "glm4_moe": (
        "glm4moe",
        {
            **MIXTURE,
            "block_count": 3,
            "nextn_predict_layers": 1,
            "attention.key_length": 16,
            "rope.dimension_count": 8,
            "leading_dense_block_count": 1,
            "expert_shared_count": 1,
            "expert_weights_norm": True,
        },
        {
            **HF,
            "head_dim": 16,
            "first_k_dense_replace": 1,
            "n_shared_experts": 1,
            "use_qk_norm": True,
        },
    ),
    "gpt_oss": (
        "gpt-oss",
        {**MIXTURE, "attention.key_length": 16, "attention.sliding_window": 128},
        {**HF, "intermediate_size": 32, "head_dim": 16, "rope_scaling": {"type": "default"}},
    ),
    "minimax_m2": (
        "minimax-m2",
        {**MIXTURE, "attention.key_length": 16, "rope.dimension_count": 8},
        {**HF, "intermediate_size": 32, "head_dim": 16, "rotary_dim": 8},
    ),
    "ernie4_5_moe": (
        "ernie4_5-moe",
        {**MIXTURE, "interleave_moe_layer_step": 1, "leading_dense_block_count": 1},
        {
            **HF,
            "moe_num_experts": 4,
            "moe_k": 2,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
        },
    ),
    "gemma4_text": (
        "gemma4",
        {
            **MIXTURE,
            "attention.key_length": 32,
            "attention.key_length_swa": 16,
            "attention.head_count_kv": [2, 1],
            "attention.sliding_window_pattern": [True, False],
            "attention.sliding_window": 64,
            "embedding_length_per_layer_input": 0,
            "final_logit_softcapping": 30.0,
            "rope.freq_base_swa": 10_000.0,
        },
        {
            **HF,
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "layer_types": ["sliding_attention", "full_attention"],
            "enable_moe_block": True,
            "top_k_experts": 2,
            "hidden_size_per_layer_input": 0,
            "final_logit_softcapping": 30.0,
            "sliding_window": 64,
            "rope_parameters": {
                "full_attention": {
                    "rope_type": "proportional",
                    "rope_theta": 10_000.0,
                    "partial_rotary_factor": 0.25,
                },
                "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
            },
        },
    ),
}
"""By family: the architecture's name, its keys, and what a config says of the same model."""


def published_spec(family: str) -> ModelSpec:
    """The spec that a config of the same model gives."""
    reader = ConfigReader({"model_type": family, **MODELS[family][2]}, "config.json")
    spec = FAMILIES[family].read_spec(reader)
    assert not reader.problems, reader.problems
    return spec


def model_values(family: str) -> dict[str, Any]:
    """All keys of a model."""
    architecture, own, _ = MODELS[family]
    values = {f"{architecture}.{key}": value for key, value in own.items()}
    return {"general.architecture": architecture, **values, **vocabulary_values(272)}


def model_tensors(family: str, kind: str = "F32") -> dict[str, Declared]:
    """All tensors of a model, matrices of experts in a kind."""
    spec = published_spec(family)
    tensors: dict[str, Declared] = {}
    for name, shape in FAMILIES[family].dense_shapes(spec).items():
        layer, rest = layer_of(name)
        if rest == GATE_UP_BIAS:
            for part in ("gate", "up"):
                tensors[f"blk.{layer}.ffn_{part}_exps.bias"] = Declared((shape[0], shape[1] // 2))
        elif rest == KV_B:
            tensors[f"blk.{layer}.attn_k_b.weight"] = Declared((4, 32, 16))
            tensors[f"blk.{layer}.attn_v_b.weight"] = Declared((4, 16, 32))
        else:
            bare = shape[1:] if len(shape) > 1 and shape[0] == 1 else shape
            # Only these families have no norm of the other name.
            last = family in ("glm4_moe", "gpt_oss", "gemma4_text")
            tensors[stored_names(name)[0 if last else -1]] = Declared(bare)
    for layer in spec.moe_layers:
        for part in ExpertPart:
            rows, columns = (64, 32) if part is ExpertPart.DOWN else (32, 64)
            name = f"blk.{layer}.ffn_{part}_exps.weight"
            tensors[name] = Declared((spec.num_experts, rows, columns), kind)
    return tensors


def write_model(path: Path, family: str, kind: str = "F32") -> Path:
    """Write the file of a model."""
    return write_gguf(path, model_values(family), model_tensors(family, kind))


def inspected(path: Path) -> Inspection:
    """Return what is found in a model in which nothing is wrong."""
    found = inspect_folder(str(path))
    assert not found.report.problems, found.report.problems
    return found


def problem(path: Path) -> ErrorReport:
    """Return the one thing that is wrong with a model."""
    report = inspect_folder(str(path)).report
    assert len(report.problems) == 1, report.problems
    return report.problems[0]


def changed(
    path: Path,
    family: str,
    values: Mapping[str, Any] | None = None,
    tensors: Mapping[str, Declared | None] | None = None,
) -> Path:
    """Write a model with other keys (None: without) and tensors."""
    own = {
        key: value
        for key, value in (model_values(family) | dict(values or {})).items()
        if value is not None
    }
    there = {
        name: each for name, each in (model_tensors(family) | dict(tensors or {})).items() if each
    }
    return write_gguf(path, own, there)
