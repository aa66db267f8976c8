"""Tiny folders whose matrices are published in few bits with scales, written with numpy alone."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.checkpoint_folders import (
    Tensor,
    TinyModel,
    stored,
    tiny_config,
    tiny_tensors,
    write_json,
    write_safetensors,
    write_tokenizer,
)

BLOCKS_128: dict[str, Any] = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
}
SMALL_BLOCKS = {**BLOCKS_128, "weight_block_size": [16, 24]}
"""Neither fits the matrices of a tiny model."""
MODEL = TinyModel(num_layers=2, num_experts=4, num_shards=0)


def compressed(strategy: str, **changes: object) -> dict[str, Any]:
    """The config of a checkpoint by compressed-tensors in eight bits."""
    weights = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": strategy, **changes}
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
    }


def packed(strategy: str, **changes: object) -> dict[str, Any]:
    """The config of a checkpoint by compressed-tensors in four bits."""
    four = {"num_bits": 4, "type": "int", "actorder": None}
    stated = compressed(strategy, **(four | changes))
    return {**stated, "format": "pack-quantized"}


@dataclasses.dataclass(frozen=True, slots=True)
class Scaled:
    """One published matrix; codes in four bits are levels plus eight."""

    codes: np.ndarray
    scales: np.ndarray
    block: tuple[int, int]
    bits: int = 8

    def values(self) -> np.ndarray:
        """The weights in f32."""
        rows, columns = self.codes.shape
        wide = np.repeat(np.repeat(self.scales, self.block[0], 0), self.block[1], 1)
        levels = np.array([level_of(code) for code in range(256)], np.float32)
        if self.bits == 4:
            levels = np.arange(-8, 248, dtype=np.float32)
        product: np.ndarray = levels[self.codes] * wide[:rows, :columns]
        return product


def level_of(code: int) -> float:
    """What a byte of e4m3 stands for, by its definition."""
    sign = -1.0 if code & 128 else 1.0
    exponent, fraction = (code & 127) // 8, code % 8
    if (exponent, fraction) == (15, 7):
        return math.nan
    if exponent == 0:
        return sign * fraction * 2.0**-9
    return sign * (8 + fraction) * 2.0 ** (exponent - 10)


def rounded_to_bf16(values: np.ndarray) -> np.ndarray:
    """The nearest bf16 of each number, ties to even, by comparing both neighbours."""
    low = (values.view(np.uint32) >> 16 << 16).view(np.float32)
    high = ((values.view(np.uint32) >> 16) + np.uint32(1) << 16).view(np.float32)
    below = np.abs(values.astype(np.float64) - low)
    above = np.abs(high.astype(np.float64) - values)
    is_even = (low.view(np.uint32) >> 16) % 2 == 0
    takes_low = (below < above) | ((below == above) & is_even)
    nearest: np.ndarray = np.where(takes_low, low, high)
    return nearest


def words_of(codes: np.ndarray) -> np.ndarray:
    """Eight columns in each word, the first in its lowest bits; missing ones are zeros."""
    rows, columns = codes.shape
    words = np.zeros((rows, -(-columns // 8)), np.uint32)
    for column in range(columns):
        words[:, column // 8] |= codes[:, column].astype(np.uint32) << np.uint32(column % 8 * 4)
    return words


def is_scaled(name: str) -> bool:
    """Whether a matrix is one of those that publishers store in few bits."""
    is_kept = any(part in name for part in ("norm", "embed_tokens", "lm_head", "mlp.gate."))
    return not is_kept


def scaled_matrices(
    block: tuple[int, int], model: TinyModel = MODEL, seed: int = 3, bits: int = 8
) -> dict[str, Scaled]:
    """Random codes and scales for the matrices of a tiny model; block sizes of 0 mean the whole."""
    generator = np.random.default_rng(seed)
    found: dict[str, Scaled] = {}
    for name, (_, shape, _) in tiny_tensors(model).items():
        if not is_scaled(name):
            continue
        rows, columns = block[0] or shape[0], block[1] or shape[1]
        grid = (-(-shape[0] // rows), -(-shape[1] // columns))
        codes = generator.integers(0, 1 << bits, shape, np.uint8)
        codes[(codes & 127) == 127] = 0
        scales = generator.uniform(1e-4, 1e-3, grid).astype(np.float32)
        found[name] = Scaled(codes, scales, (rows, columns), bits)
    return found


def write_scaled(
    folder: Path,
    quantization: dict[str, Any],
    matrices: dict[str, Scaled],
    *,
    ending: str = "_scale_inv",
    scale_dtype: str = "F32",
) -> Path:
    """Write a complete folder in which these matrices are in eight bits."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", tiny_config(MODEL) | {"quantization_config": quantization})
    write_tokenizer(folder)
    tensors: dict[str, Tensor] = {}
    for name, tensor in tiny_tensors(MODEL).items():
        if name not in matrices:
            tensors[name] = tensor
            continue
        own = matrices[name]
        if own.bits == 4:
            words = words_of(own.codes)
            tensors[f"{name}_packed"] = ("I32", words.shape, words.tobytes())
            shape = np.array(own.codes.shape, np.int64)
            tensors[f"{name}_shape"] = ("I64", (2,), shape.tobytes())
        else:
            tensors[name] = ("F8_E4M3", own.codes.shape, own.codes.tobytes())
        data = stored(own.scales, scale_dtype)
        tensors[name + ending] = (scale_dtype, own.scales.shape, data)
    write_safetensors(folder / "model.safetensors", tensors)
    return folder
