"""Tiny folders of any family, made from what the family itself says of its tensors.

They test reading: that names and shapes are those of published checkpoints is tested against
transformers elsewhere.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES
from runtime.inspect.families.wrapped import with_text_part
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.checkpoint_folders import (
    Tensor,
    stored,
    write_json,
    write_safetensors,
    write_tokenizer,
)

CONFIGS: Mapping[str, dict[str, object]] = {
    "deepseek_v3": {
        "model_type": "deepseek_v3",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 272,
        "max_position_embeddings": 512,
        "kv_lora_rank": 24,
        "q_lora_rank": 40,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "n_routed_experts": 8,
        "n_group": 4,
        "topk_group": 2,
        "num_experts_per_tok": 3,
        "num_nextn_predict_layers": 1,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
    },
    "granitemoe": {
        "model_type": "granitemoe",
        "hidden_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 272,
        "max_position_embeddings": 512,
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "intermediate_size": 192,
        "tie_word_embeddings": True,
    },
    "llama": {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 272,
        "max_position_embeddings": 512,
        "intermediate_size": 96,
    },
    "qwen3_vl_moe": {
        "model_type": "qwen3_vl_moe",
        "tie_word_embeddings": False,
        "text_config": {
            "model_type": "qwen3_vl_moe_text",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 272,
            "max_position_embeddings": 512,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 48,
        },
    },
}
Values = dict[str, np.ndarray]


def spec_of(model_type: str) -> ModelSpec:
    """The spec of a tiny config."""
    reader = with_text_part(ConfigReader(CONFIGS[model_type], "config.json"))
    spec = FAMILIES[model_type].read_spec(reader)
    assert not reader.problems
    return spec


def tensor_values(model_type: str, seed: int = 0) -> Values:
    """Random values of every tensor that the family asks for, those that bf16 holds exactly."""
    family, spec = FAMILIES[model_type], spec_of(model_type)
    shapes = dict(family.dense_shapes(spec))
    for layer in spec.moe_layers:
        for number in range(spec.num_experts):
            for part in ExpertPart:
                place = family.expert_part(spec, ExpertId(layer, number), part)
                shapes[place.name] = place.shape
    generator = np.random.default_rng(seed)
    return {
        name: generator.integers(-128, 128, math.prod(shape)).astype(np.float32).reshape(shape)
        for name, shape in shapes.items()
    }


def write_family(folder: Path, model_type: str, values: Values, dtype: str = "BF16") -> Path:
    """Write a complete folder with these tensors and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", CONFIGS[model_type])
    write_tokenizer(folder)
    tensors: dict[str, Tensor] = {
        name: (dtype, array.shape, stored(array, dtype)) for name, array in values.items()
    }
    write_safetensors(folder / "model.safetensors", tensors)
    return folder
