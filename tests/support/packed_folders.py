"""A tiny gpt-oss folder whose experts are published in MXFP4, written byte by byte."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.gpt_oss import GPT_OSS
from tests.support.checkpoint_folders import (
    Tensor,
    stored,
    write_json,
    write_safetensors,
    write_tokenizer,
)

HIDDEN_SIZE = 64
EXPERT_WIDTH = 96
NUM_EXPERTS = 4
CONFIG: Mapping[str, object] = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": HIDDEN_SIZE,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 272,
    "max_position_embeddings": 512,
    "sliding_window": 12,
    "num_local_experts": NUM_EXPERTS,
    "num_experts_per_tok": 2,
    "intermediate_size": EXPERT_WIDTH,
    "eos_token_id": 256,
    "quantization_config": {"quant_method": "mxfp4"},
}
LEVELS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def packed_tensors(seed: int = 0) -> dict[str, Tensor]:
    """Random tensors of the folder: bf16 for all that is dense, bytes for the experts."""
    random = np.random.default_rng(seed)
    spec = GPT_OSS.read_spec(ConfigReader(CONFIG, "config.json"))
    tensors: dict[str, Tensor] = {}
    for name, shape in GPT_OSS.dense_shapes(spec).items():
        values = random.standard_normal(shape) * (0.1 if len(shape) == 1 else shape[-1] ** -0.5)
        values = values + 1 if "norm" in name else values
        tensors[name] = ("BF16", shape, stored(values.astype(np.float32), "BF16"))
    for layer in range(spec.num_layers):
        for stem, rows, columns in (
            ("gate_up_proj", 2 * EXPERT_WIDTH, HIDDEN_SIZE),
            ("down_proj", HIDDEN_SIZE, EXPERT_WIDTH),
        ):
            name = f"model.layers.{layer}.mlp.experts.{stem}"
            tensors |= _packed(random, name, (NUM_EXPERTS, rows, columns // 32))
    return tensors


def _packed(random: np.random.Generator, name: str, groups: tuple[int, ...]) -> dict[str, Tensor]:
    shape = (*groups, 16)
    blocks = random.integers(0, 256, math.prod(shape), dtype=np.uint8)
    scales = random.integers(121, 124, math.prod(groups), dtype=np.uint8)
    return {
        f"{name}_blocks": ("U8", shape, blocks.tobytes()),
        f"{name}_scales": ("U8", groups, scales.tobytes()),
    }


def weights_of(tensors: Mapping[str, Tensor], name: str) -> np.ndarray:
    """What the blocks and scales of a name stand for, one number after another: f32."""
    _, groups, scale_bytes = tensors[f"{name}_scales"]
    exponents = np.frombuffer(scale_bytes, np.uint8).astype(int) - 127
    values = [
        (-1.0 if half & 8 else 1.0) * LEVELS[half & 7]
        for byte in tensors[f"{name}_blocks"][2]
        for half in (byte & 15, byte >> 4)
    ]
    flat = np.array(values).reshape(-1, 32) * np.exp2(exponents)[:, None]
    return flat.reshape(*groups[:-1], -1).astype(np.float32)


def write_packed(folder: Path, seed: int = 0, *, is_indexed: bool = False) -> Path:
    """Write a complete folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", CONFIG)
    write_tokenizer(folder)
    tensors = packed_tensors(seed)
    write_safetensors(folder / "model.safetensors", tensors)
    if is_indexed:
        weight_map = dict.fromkeys(tensors, "model.safetensors")
        write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map})
    return folder


def write_plain(folder: Path, seed: int) -> Path:
    """Write what the packed folder of a seed stands for, in f32 as transformers stores it."""
    folder.mkdir()
    tensors: dict[str, Tensor] = {}
    packed = packed_tensors(seed)
    for name, (dtype, shape, data) in packed.items():
        stem = name.removesuffix("_blocks")
        if name.endswith("_scales"):
            continue
        if stem != name:
            turned = np.ascontiguousarray(weights_of(packed, stem).transpose(0, 2, 1))
            tensors[stem] = ("F32", turned.shape, turned.tobytes())
        else:
            tensors[name] = (dtype, shape, data)
    write_safetensors(folder / "model.safetensors", tensors)
    config = {name: value for name, value in CONFIG.items() if name != "quantization_config"}
    write_json(folder / "config.json", config)
    return folder
