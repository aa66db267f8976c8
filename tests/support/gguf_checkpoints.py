"""GGUF files made from tiny checkpoints as converters make them, by the format's own library."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save_file
from safetensors.torch import load_file

Tensors = dict[str, np.ndarray]
ARCHITECTURES = {
    "llama": "llama",
    "mixtral": "llama",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "qwen2_moe": "qwen2moe",
    "olmoe": "olmoe",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "glm4_moe": "glm4moe",
    "minimax_m2": "minimax-m2",
    "ernie4_5_moe": "ernie4_5-moe",
}
_EXPERT = re.compile(
    r"model\.layers\.(\d+)\.\w+\.experts\.(\d+)\.(gate_proj|up_proj|down_proj|w1|w2|w3)\.weight"
)
_PARTS = {
    "w1": "gate",
    "w3": "up",
    "w2": "down",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
}
_COUNTS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "expert_used_count": ("num_experts_per_tok", "moe_k"),
    "expert_count": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "expert_group_count": "n_group",
    "expert_group_used_count": "topk_group",
    "leading_dense_block_count": ("first_k_dense_replace", "moe_layer_start_index"),
    "interleave_moe_layer_step": "moe_layer_interval",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "rope.dimension_count": ("qk_rope_head_dim", "rotary_dim"),
    "attention.value_length_mla": "v_head_dim",
}


def write_both(tiny: Path, folder: Path, kind: str) -> tuple[Path, Path]:
    """Write a checkpoint as one GGUF file, and a folder with the numbers that stand in it.

    Matrices are in ``kind`` where their rows are whole blocks, all else in f32.
    """
    config = json.loads((tiny / "config.json").read_text(encoding="utf-8"))
    wanted = gguf.GGMLQuantizationType[kind]
    plain: Tensors = {}
    stored: dict[str, tuple[np.ndarray, gguf.GGMLQuantizationType]] = {}
    loaded = load_file(tiny / "model.safetensors")
    published = {name: tensor.float().numpy() for name, tensor in loaded.items()}
    for name, array in published.items():
        is_block = array.ndim == 2 and not array.shape[1] % gguf.GGML_QUANT_SIZES[wanted][0]
        is_router = re.search(r"(mlp|moe)\.gate\.weight|shared_expert_gate", name)
        own = wanted if is_block and not is_router else gguf.GGMLQuantizationType.F32
        data = gguf.quantize(array, own)
        stored[name] = (data, own)
        plain[name] = gguf.dequantize(data, own).astype(np.float32).reshape(array.shape)
    shutil.copytree(tiny, folder / "plain", dirs_exist_ok=True)
    save_file(plain, folder / "plain" / "model.safetensors", {"format": "pt"})
    path = folder / f"{config['model_type']}-{kind}.gguf"
    _write(path, config, stored, tiny)
    return path, folder / "plain"


def _write(path: Path, config: dict[str, Any], stored: Any, tiny: Path) -> None:
    architecture = ARCHITECTURES[config["model_type"]]
    writer = gguf.GGUFWriter(str(path), architecture)
    for key, value in _values(config).items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        (writer.add_bool if isinstance(value, bool) else add)(f"{architecture}.{key}", value)
    _add_vocabulary(writer, tiny)
    for name, (data, kind) in _converted(config, architecture, stored).items():
        writer.add_tensor(name, np.ascontiguousarray(data), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _values(config: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, names in _COUNTS.items():
        for name in (names,) if isinstance(names, str) else names:
            if config.get(name) is not None:
                values.setdefault(key, config[name])
    rope = config.get("rope_parameters") or {}
    values["attention.layer_norm_rms_epsilon"] = float(config["rms_norm_eps"])
    values["rope.freq_base"] = float(rope.get("rope_theta", 10_000.0))
    if rope.get("rope_type") == "linear":
        values["rope.scale_linear"] = float(rope["factor"])
    if "kv_lora_rank" in config:
        values["attention.head_count_kv"] = 1
        key_length = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
        values["attention.key_length_mla"] = key_length
        values["attention.key_length"] = config["kv_lora_rank"] + config["qk_rope_head_dim"]
    if config["model_type"] in ("deepseek_v3", "glm4_moe", "minimax_m2"):
        values["expert_gating_func"] = 2
        values["expert_weights_norm"] = True
    if config.get("routed_scaling_factor"):
        values["expert_weights_scale"] = float(config["routed_scaling_factor"])
    if config["model_type"] == "glm4_moe":
        values["rope.dimension_count"] = config["head_dim"] // 2
    return values


def _add_vocabulary(writer: Any, tiny: Path) -> None:
    told = json.loads((tiny / "tokenizer.json").read_text(encoding="utf-8"))
    settings = json.loads((tiny / "tokenizer_config.json").read_text(encoding="utf-8"))
    vocabulary = told["model"]["vocab"]
    special = {each["content"] for each in told["added_tokens"]}
    names = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(names)
    writer.add_token_types([3 if name in special else 1 for name in names])
    writer.add_token_merges([" ".join(pair) for pair in told["model"]["merges"]])
    writer.add_bos_token_id(vocabulary[settings["bos_token"]])
    writer.add_eos_token_id(vocabulary[settings["eos_token"]])
    writer.add_chat_template(settings["chat_template"])


def _converted(config: dict[str, Any], architecture: str, stored: Any) -> dict[str, Any]:
    """Return tensors under the format's names; experts stacked, rows as converters turn them."""
    (number,) = (key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(number, config["num_hidden_layers"])
    made: dict[str, Any] = {}
    stacks: dict[str, dict[int, Any]] = {}
    for name, (data, kind) in stored.items():
        layer = re.match(r"model\.layers\.(\d+)\.", name)
        match = _EXPERT.fullmatch(name)
        if match:
            stack = f"blk.{match[1]}.ffn_{_PARTS[match[3]]}_exps.weight"
            stacks.setdefault(stack, {})[int(match[2])] = (data, kind)
        elif name.endswith("e_score_correction_bias") and layer:
            made[f"blk.{layer[1]}.exp_probs_b.bias"] = (data.reshape(-1), kind)
        elif name.endswith("kv_b_proj.weight") and layer:
            # Turned, so that blocks would be others: written in f32.
            values = gguf.dequantize(data, kind).astype(np.float32)
            plain = gguf.GGMLQuantizationType.F32
            heads = values.reshape(config["num_attention_heads"], -1, config["kv_lora_rank"])
            cut = config["qk_nope_head_dim"]
            made[f"blk.{layer[1]}.attn_k_b.weight"] = (heads[:, :cut].swapaxes(1, 2), plain)
            made[f"blk.{layer[1]}.attn_v_b.weight"] = (heads[:, cut:], plain)
        else:
            base, _, ending = name.rpartition(".")
            heads_of = {"q": "num_attention_heads", "k": "num_key_value_heads"}
            turned = re.search(r"self_attn\.([qk])_proj", name)
            if architecture == "llama" and turned:
                heads = config[heads_of[turned[1]]]
                pairs = data.reshape(heads, 2, len(data) // heads // 2, -1).swapaxes(1, 2)
                made[f"{names.get_name(base)}.{ending}"] = (pairs.reshape(data.shape), kind)
                continue
            if name.endswith("shared_expert_gate.weight"):
                made[f"{names.get_name(base)}.{ending}"] = (data.reshape(-1), kind)
                continue
            made[f"{names.get_name(base)}.{ending}"] = (data, kind)
    for stack, experts in stacks.items():
        parts = [experts[each][0] for each in sorted(experts)]
        made[stack] = (np.stack(parts), experts[0][1])
    return made
