"""Weights and configuration of the demo model in the layout of a Hugging Face folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from resources.demo.derived import Derived
from resources.demo.gguf_source import DenseShape, GgufSource, Vocabulary
from resources.demo.rounding import FloatArray, from_bf16_bits, to_bf16_bits
from resources.demo.safetensors_file import write_bf16_file
from resources.demo.split import split_feed_forward

_ATTENTION = ("q_proj", "k_proj", "v_proj")
_NUM_SHARDS = 3


def model_config(dense: DenseShape, derived: Derived, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the content of config.json."""
    split = derived.shape
    return {
        "architectures": ["Qwen2MoeForCausalLM"],
        "attention_dropout": 0.0,
        "bos_token_id": vocabulary.bos_token_id,
        "decoder_sparse_step": 1,
        "dtype": "bfloat16",
        "eos_token_id": vocabulary.eos_token_id,
        "hidden_act": "silu",
        "hidden_size": dense.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": dense.feed_forward_size,
        "max_position_embeddings": dense.context_tokens,
        "mlp_only_layers": [],
        "model_type": "qwen2_moe",
        "moe_intermediate_size": split.expert_size,
        "norm_topk_prob": False,
        "num_attention_heads": dense.num_heads,
        "num_experts": split.num_experts,
        "num_experts_per_tok": split.top_k,
        "num_hidden_layers": dense.num_layers,
        "num_key_value_heads": dense.num_kv_heads,
        "output_router_logits": False,
        "pad_token_id": vocabulary.padding_token_id,
        "qkv_bias": True,
        "rms_norm_eps": dense.rms_norm_eps,
        "rope_parameters": {"rope_theta": dense.rope_theta, "rope_type": "default"},
        "rope_theta": dense.rope_theta,
        "router_aux_loss_coef": 0.001,
        "shared_expert_intermediate_size": split.shared_size,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": dense.vocab_size,
    }


def generation_config(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the content of generation_config.json: greedy, ending at either end mark.

    The penalty keeps so small a model from repeating a sentence for ever.
    """
    return {
        "bos_token_id": vocabulary.bos_token_id,
        "do_sample": False,
        "eos_token_id": [vocabulary.eos_token_id, vocabulary.unknown_token_id],
        "pad_token_id": vocabulary.padding_token_id,
        "repetition_penalty": 1.05,
    }


def write_weights(folder: Path, source: GgufSource, derived: Derived) -> None:
    """Write the shards and their index into a folder."""
    num_layers = source.shape().num_layers
    weight_map: dict[str, str] = {}
    total_bytes = 0
    per_shard = -(-num_layers // _NUM_SHARDS)
    for shard in range(_NUM_SHARDS):
        tensors = _rounded(source.outer_tensors()) if shard == 0 else {}
        for layer in range(shard * per_shard, min(num_layers, (shard + 1) * per_shard)):
            for name, values in layer_tensors(source, derived, layer).items():
                tensors[f"model.layers.{layer}.{name}"] = values
        file_name = f"model-{shard + 1:05d}-of-{_NUM_SHARDS:05d}.safetensors"
        shapes = {name: values.shape for name, values in sorted(tensors.items())}
        total_bytes += write_bf16_file(folder / file_name, shapes, tensors.__getitem__)
        weight_map.update(dict.fromkeys(shapes, file_name))
    index = {
        "metadata": {"total_size": total_bytes},
        "weight_map": dict(sorted(weight_map.items())),
    }
    (folder / "model.safetensors.index.json").write_text(
        json.dumps(index, indent=1) + "\n", "utf-8"
    )


def layer_tensors(source: GgufSource, derived: Derived, layer: int) -> dict[str, FloatArray]:
    """Return one layer of the demo model by name inside ``model.layers.N.``."""
    dense = _rounded(source.layer_tensors(layer))
    tensors = {name: values for name, values in dense.items() if not name.startswith("mlp.")}
    for name in _ATTENTION:
        rows = dense[f"self_attn.{name}.weight"].shape[0]
        tensors[f"self_attn.{name}.bias"] = np.zeros(rows, np.float32)
    block = split_feed_forward(
        gate=dense["mlp.gate_proj.weight"],
        up=dense["mlp.up_proj.weight"],
        down=dense["mlp.down_proj.weight"],
        assignment=derived.assignment[layer],
        router=derived.routers[layer],
        shape=derived.shape,
    )
    tensors.update({f"mlp.{name}": values for name, values in block.items()})
    return tensors


def _rounded(tensors: dict[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: from_bf16_bits(to_bf16_bits(values)) for name, values in tensors.items()}
