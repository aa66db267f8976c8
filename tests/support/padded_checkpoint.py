"""A checkpoint with experts so big that the model has a real size, written without holding it."""

from pathlib import Path

import numpy as np

from tests.support.checkpoint_folders import TinyModel, stored
from tests.support.sparse_checkpoints import write_sparse_checkpoint

_SHAPE = TinyModel(hidden_size=512, num_layers=8, num_experts=32, num_shards=4)
_TILE_BYTES = 8 << 20


def write_padded_checkpoint(folder: Path, least_bytes: int) -> int:
    """Write a bf16 model with at least so many bytes of routed experts; return how many it has.

    Its numbers are random and come again every few MiB.
    """
    num_experts = _SHAPE.num_layers * _SHAPE.num_experts
    row_bytes = 3 * _SHAPE.hidden_size * 2
    width = -(-least_bytes // (num_experts * row_bytes))
    width += -width % 32
    model = TinyModel(
        hidden_size=_SHAPE.hidden_size,
        num_layers=_SHAPE.num_layers,
        num_experts=_SHAPE.num_experts,
        num_shards=_SHAPE.num_shards,
        expert_width=width,
    )
    write_sparse_checkpoint(folder, model)
    values = np.random.default_rng(0).standard_normal(_TILE_BYTES // 2, np.float32) * 0.02
    tile = stored(values, model.dtype)
    for shard in folder.glob("*.safetensors"):
        _fill(shard, tile)
    return num_experts * row_bytes * width


def _fill(shard: Path, tile: bytes) -> None:
    """Write the tile again and again over everything behind the header."""
    size = shard.stat().st_size
    with shard.open("r+b") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        file.seek(header_bytes, 1)
        while (left := size - file.tell()) > 0:
            file.write(tile[:left])
