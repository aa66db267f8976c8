"""The demo with weights that no format holds exactly, as a folder of ours and as a GGUF file.

The demo's weights come from Q4_1 and would be packed without error. What is written computes the
same in f32: norms are folded into the matrices behind them, random positive scales go into the
rows of value and up matrices and out of the columns behind them. Beside that the hidden size and
the heads are filled up with zeros to a multiple of 256, without which llama.cpp writes none of
its K types. ``with_clear_choices`` makes another model of it, for comparisons of programs.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from safetensors.numpy import save_file

Floats = npt.NDArray[np.float32]
Tensors = dict[str, Floats]
BLOCK = 256
LEAST_GATE = 1e-9
SPREAD = 0.4
"""Deviation of the logarithm of the random scales."""
CLEARER = 256.0
"""The demo's routers tell experts apart by some 1e-4, so that rounding decides who is the last of
those chosen: programs part by 0.02 of KL with the same f32 weights."""


def read_tensors(folder: Path) -> Tensors:
    """Return all tensors of a model folder in f32."""
    found: Tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                found[name] = file.get_tensor(name).float().numpy()
    return found


def transformed(config: Mapping[str, Any], before: Tensors) -> tuple[dict[str, Any], Tensors]:
    """Return config and tensors of the model that computes the same."""
    random = np.random.default_rng(8)
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    kv_heads, head_dim = config["num_key_value_heads"], hidden // heads
    wide = -(-hidden // BLOCK) * BLOCK
    wide_heads = wide // head_dim
    group = heads // kv_heads
    wide_kv = wide_heads // group
    ones = np.full(wide, np.sqrt(hidden / wide), np.float32)
    made: Tensors = {}

    def scales(count: int) -> Floats:
        return np.exp(SPREAD * random.standard_normal(count)).astype(np.float32)

    def padded(array: Floats, rows: int, columns: int) -> Floats:
        result = np.zeros((rows, columns), np.float32)
        result[: array.shape[0], : array.shape[1]] = array
        return result

    def filled(vector: Floats, length: int) -> Floats:
        return np.concatenate([vector, np.zeros(length - len(vector), np.float32)])

    embedding = before["model.embed_tokens.weight"]
    made["model.embed_tokens.weight"] = padded(embedding, len(embedding), wide)
    made["lm_head.weight"] = padded(embedding * before["model.norm.weight"], len(embedding), wide)
    made["model.norm.weight"] = ones.copy()
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        first, second = (
            before[f"{at}.{name}.weight"]
            for name in ("input_layernorm", "post_attention_layernorm")
        )
        for name in ("input_layernorm", "post_attention_layernorm"):
            made[f"{at}.{name}.weight"] = ones.copy()
        value_scales = scales(kv_heads * head_dim)
        rows_of = {"q": wide, "k": wide_kv * head_dim, "v": wide_kv * head_dim}
        for part, rows in rows_of.items():
            matrix = before[f"{at}.self_attn.{part}_proj.weight"] * first
            bias = before[f"{at}.self_attn.{part}_proj.bias"]
            if part == "v":
                matrix, bias = matrix * value_scales[:, None], bias * value_scales
            made[f"{at}.self_attn.{part}_proj.weight"] = padded(matrix, rows, wide)
            made[f"{at}.self_attn.{part}_proj.bias"] = filled(bias, rows)
        by_head = np.repeat(value_scales.reshape(kv_heads, head_dim), group, axis=0).reshape(-1)
        out = before[f"{at}.self_attn.o_proj.weight"] / by_head
        made[f"{at}.self_attn.o_proj.weight"] = padded(out, wide, wide)
        for name in ("mlp.gate.weight", "mlp.shared_expert_gate.weight"):
            matrix = before[f"{at}.{name}"] * second
            made[f"{at}.{name}"] = padded(matrix, len(matrix), wide)
        blocks = [f"mlp.experts.{number}" for number in range(config["num_experts"])]
        for block in (*blocks, "mlp.shared_expert"):
            gate, up, down = (
                before[f"{at}.{block}.{part}_proj.weight"] for part in ("gate", "up", "down")
            )
            by_row = scales(len(up))
            made[f"{at}.{block}.gate_proj.weight"] = padded(gate * second, len(gate), wide)
            up = up * second * by_row[:, None]
            made[f"{at}.{block}.up_proj.weight"] = padded(up, len(up), wide)
            made[f"{at}.{block}.down_proj.weight"] = padded(down / by_row, wide, len(up))
    changed = {
        "hidden_size": wide,
        "num_attention_heads": wide_heads,
        "num_key_value_heads": wide_kv,
        "rms_norm_eps": config["rms_norm_eps"] * hidden / wide,
        "tie_word_embeddings": False,
        "dtype": "float32",
    }
    return {**config, **changed}, made


def with_clear_choices(tensors: Tensors) -> Tensors:
    """Return a model that chooses the same experts from the same input by a wider margin.

    It is another model, as weights of the chosen ones differ more.
    """
    return {
        name: tensor * np.float32(CLEARER) if name.endswith(".mlp.gate.weight") else tensor
        for name, tensor in tensors.items()
    }


def write_folder(source: Path, target: Path, config: Mapping[str, Any], tensors: Tensors) -> None:
    """Write a model folder, with the small files of another one."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.suffix == ".json" and "index" not in path.name:
            shutil.copyfile(path, target / path.name)
    (target / "config.json").write_text(json.dumps(config, indent=1))
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})


def write_gguf(path: Path, config: Mapping[str, Any], tensors: Tensors) -> None:
    """Write the same as GGUF in f32, without a vocabulary."""
    writer = gguf.GGUFWriter(str(path), "qwen2moe")
    writer.add_name("transformed demo")
    writer.add_file_type(0)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(float(config["rope_theta"]))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_expert_count(config["num_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    for name, array in _gguf_tensors(config, tensors):
        writer.add_tensor(name, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_tensors(config: Mapping[str, Any], tensors: Tensors) -> Iterator[tuple[str, Floats]]:
    yield "token_embd.weight", tensors["model.embed_tokens.weight"]
    yield "output.weight", tensors["lm_head.weight"]
    yield "output_norm.weight", tensors["model.norm.weight"]
    plain = {
        "attn_norm.weight": "input_layernorm.weight",
        "ffn_norm.weight": "post_attention_layernorm.weight",
        "attn_q.weight": "self_attn.q_proj.weight",
        "attn_k.weight": "self_attn.k_proj.weight",
        "attn_v.weight": "self_attn.v_proj.weight",
        "attn_q.bias": "self_attn.q_proj.bias",
        "attn_k.bias": "self_attn.k_proj.bias",
        "attn_v.bias": "self_attn.v_proj.bias",
        "attn_output.weight": "self_attn.o_proj.weight",
        "ffn_gate_inp.weight": "mlp.gate.weight",
        "ffn_gate_shexp.weight": "mlp.shared_expert.gate_proj.weight",
        "ffn_up_shexp.weight": "mlp.shared_expert.up_proj.weight",
        "ffn_down_shexp.weight": "mlp.shared_expert.down_proj.weight",
    }
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        for name, other in plain.items():
            yield f"blk.{layer}.{name}", tensors[f"{at}.{other}"]
        gate = tensors[f"{at}.mlp.shared_expert_gate.weight"]
        if not gate.any():
            # The peer divides by what this gate gives: nothing by nothing. With so little, halves
            # are halves all the same.
            gate = gate + np.float32(LEAST_GATE)
        yield f"blk.{layer}.ffn_gate_inp_shexp.weight", gate.reshape(-1)
        for part in ("gate", "up", "down"):
            stack = [
                tensors[f"{at}.mlp.experts.{number}.{part}_proj.weight"]
                for number in range(config["num_experts"])
            ]
            yield f"blk.{layer}.ffn_{part}_exps.weight", np.stack(stack)
