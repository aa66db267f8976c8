"""Tiny folders whose matrices are published by GPTQ or AWQ, packed level by level with numpy."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.checkpoint_folders import (
    Tensor,
    TinyModel,
    tiny_config,
    tiny_tensors,
    write_json,
    write_safetensors,
    write_tokenizer,
)
from tests.support.scaled_folders import is_scaled

MODEL = TinyModel(dtype="F16", num_layers=2, num_experts=4, num_shards=0)
GPTQ: Mapping[str, Any] = {
    "quant_method": "gptq",
    "bits": 4,
    "group_size": 32,
    "sym": True,
    "desc_act": False,
}
GPTQ_EIGHT = {**GPTQ, "bits": 8, "group_size": -1}
GPTQ_ZEROS = {**GPTQ, "sym": False, "group_size": 64, "checkpoint_format": "gptq_v2"}
AWQ: Mapping[str, Any] = {
    "quant_method": "awq",
    "bits": 4,
    "group_size": 32,
    "zero_point": True,
    "version": "gemm",
}
STATED: Mapping[str, Mapping[str, Any]] = {
    "gptq": GPTQ,
    "gptq-eight": GPTQ_EIGHT,
    "gptq-zeros": GPTQ_ZEROS,
    "awq": AWQ,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Published:
    """One matrix of outputs by inputs: its levels, and zero and scale of each group."""

    codes: np.ndarray
    zeros: np.ndarray
    scales: np.ndarray
    group_columns: int

    def values(self) -> np.ndarray:
        """The weights by the formula that both methods publish, in f32."""
        columns = self.codes.shape[1]
        zeros, scales = (
            np.repeat(each.astype(np.float32), self.group_columns, 1)[:, :columns]
            for each in (self.zeros, self.scales)
        )
        values: np.ndarray = scales * (self.codes.astype(np.float32) - zeros)
        return values


def group_columns(stated: Mapping[str, Any], columns: int) -> int:
    """How many columns share a scale."""
    size = int(stated["group_size"])
    return columns if size == -1 else size


def random_published(
    stated: Mapping[str, Any], shape: tuple[int, int], generator: np.random.Generator
) -> Published:
    """Any levels; zeros are in the middle where the config says so."""
    size = group_columns(stated, shape[1])
    grid = (shape[0], -(-shape[1] // size))
    bits = int(stated["bits"])
    zeros = np.full(grid, 1 << bits - 1)
    if not stated.get("sym", False):
        zeros = generator.integers(0, 1 << bits, grid)
    scales = generator.uniform(1e-4, 2e-2, grid).astype(np.float16)
    return Published(generator.integers(0, 1 << bits, shape), zeros, scales, size)


def nearest_published(stated: Mapping[str, Any], values: np.ndarray) -> Published:
    """The levels nearest to given weights, with the scale that spans each group."""
    rows, columns = values.shape
    size, bits = group_columns(stated, columns), int(stated["bits"])
    most = (1 << bits) - 1
    padded = np.pad(values, ((0, 0), (0, -columns % size))).reshape(rows, -1, size)
    low, high = np.minimum(padded.min(-1), 0), np.maximum(padded.max(-1), 0)
    if stated.get("sym", False):
        high = np.maximum(high, -low)
        low = -high
    scales = ((high - low) / most).astype(np.float16)
    zeros = np.full(scales.shape, 1 << bits - 1)
    if not stated.get("sym", False):
        zeros = np.rint(-low / scales.astype(np.float32)).astype(int)
    levels = np.rint(padded / scales.astype(np.float32)[..., None]) + zeros[..., None]
    codes = np.clip(levels, 0, most).astype(int).reshape(rows, -1)[:, :columns]
    return Published(codes, zeros, scales, size)


def packed_tensors(stated: Mapping[str, Any], stem: str, own: Published) -> dict[str, Tensor]:
    """What a publisher stores of a matrix, by name."""
    by_method = _gptq if stated["quant_method"] == "gptq" else _awq
    return {f"{stem}.{ending}": _tensor(array) for ending, array in by_method(stated, own).items()}


def _gptq(stated: Mapping[str, Any], own: Published) -> dict[str, np.ndarray]:
    """Levels are packed along inputs, zeros along outputs, each in their own order."""
    bits = int(stated["bits"])
    in_word = range(32 // bits)
    columns = own.codes.shape[1]
    zeros = _words(own.zeros, bits, in_word)
    if stated.get("checkpoint_format") != "gptq_v2":
        # One less in each level, taken off whole words: from a zero of 0 the next level borrows.
        zeros -= np.uint32(sum(1 << bits * place for place in in_word))
    return {
        "qweight": _words(own.codes.T, bits, in_word).astype(np.int32),
        "qzeros": np.ascontiguousarray(zeros.T).astype(np.int32),
        "scales": np.ascontiguousarray(own.scales.T),
        "g_idx": (np.arange(columns) // own.group_columns).astype(np.int32),
    }


def _awq(stated: Mapping[str, Any], own: Published) -> dict[str, np.ndarray]:
    """Levels and zeros are packed along outputs, even ones first."""
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    return {
        "qweight": np.ascontiguousarray(_words(own.codes, 4, order).T).astype(np.int32),
        "qzeros": np.ascontiguousarray(_words(own.zeros, 4, order).T).astype(np.int32),
        "scales": np.ascontiguousarray(own.scales.T),
    }


def _words(levels: np.ndarray, bits: int, order: Any) -> np.ndarray:
    """Pack neighbours along the first axis; ``order`` says which comes into which bits."""
    order = list(order)
    rows = -(-len(levels) // len(order))
    words = np.zeros((rows, *levels.shape[1:]), np.uint32)
    for row in range(rows):
        for place, neighbour in enumerate(order):
            index = row * len(order) + neighbour
            if index < len(levels):
                words[row] |= levels[index].astype(np.uint32) << np.uint32(bits * place)
    return words


def _tensor(array: np.ndarray) -> Tensor:
    kinds = {np.dtype(np.int32): "I32", np.dtype(np.float16): "F16"}
    return (kinds[array.dtype], array.shape, array.tobytes())


def published_matrices(stated: Mapping[str, Any], seed: int = 3) -> dict[str, Published]:
    """Random ones for the projections of a tiny model."""
    generator = np.random.default_rng(seed)
    return {
        name: random_published(stated, (shape[0], shape[1]), generator)
        for name, (_, shape, _) in tiny_tensors(MODEL).items()
        if is_scaled(name)
    }


Change = Callable[[dict[str, Tensor]], None]


def write_levels(
    folder: Path,
    stated: Mapping[str, Any],
    matrices: Mapping[str, Published],
    change: Change = lambda tensors: None,
) -> Path:
    """Write a complete folder; ``change`` may spoil its tensors before."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", tiny_config(MODEL) | {"quantization_config": dict(stated)})
    write_tokenizer(folder)
    tensors: dict[str, Tensor] = {}
    for name, tensor in tiny_tensors(MODEL).items():
        own = matrices.get(name)
        if own is None:
            tensors[name] = tensor
        else:
            tensors |= packed_tensors(stated, name.removesuffix(".weight"), own)
    change(tensors)
    write_safetensors(folder / "model.safetensors", tensors)
    return folder
