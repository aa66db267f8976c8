"""Tiny checkpoints with their projections in eight bits, one scale for each block of weights."""

from pathlib import Path

import torch

from tests.support.checkpoint_folders import Tensor
from tests.support.published_pairs import tensor_of, write_pair
from tests.support.scaled_folders import BLOCKS_128

BLOCK = (16, 24)
LARGEST = 448.0


def both_folders(tiny: Path, root: Path) -> tuple[Path, Path]:
    """Return a folder in eight bits, and one in bf16 with the same weights, both below ``root``."""
    return write_pair(tiny, root, {**BLOCKS_128, "weight_block_size": list(BLOCK)}, _publish)


def _publish(name: str, weight: torch.Tensor) -> tuple[dict[str, Tensor], torch.Tensor]:
    """Return codes and scales, and what they stand for, by torch's own type."""
    rows, columns = weight.shape
    grid = (-(-rows // BLOCK[0]), -(-columns // BLOCK[1]))
    padded = torch.zeros(grid[0] * BLOCK[0], grid[1] * BLOCK[1])
    padded[:rows, :columns] = weight
    largest = padded.abs().view(grid[0], BLOCK[0], grid[1], BLOCK[1]).amax((1, 3))
    scales = largest / LARGEST
    wide = scales.repeat_interleave(BLOCK[0], 0).repeat_interleave(BLOCK[1], 1)[:rows, :columns]
    codes = (weight / wide).to(torch.float8_e4m3fn)
    published = {name: tensor_of(codes), f"{name}_scale_inv": tensor_of(scales)}
    return published, (codes.to(torch.float32) * wide).to(torch.bfloat16)
