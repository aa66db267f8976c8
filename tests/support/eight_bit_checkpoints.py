"""Tiny checkpoints with their projections in eight bits, one scale for each block of weights."""

import json
import re
import shutil
from pathlib import Path

import torch

BLOCK = (16, 24)
LARGEST = 448.0
_PROJECTION = re.compile(r"(_proj|_proj_with_mqa|\.w[123])\.weight$")
"""What published checkpoints store in eight bits: not the ends, norms and routers."""


def is_projection(name: str) -> bool:
    """Whether publishers store a matrix in few bits."""
    return _PROJECTION.search(name) is not None


def in_eight_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return codes, scales, and what they stand for, by torch's own type."""
    rows, columns = weight.shape
    grid = (-(-rows // BLOCK[0]), -(-columns // BLOCK[1]))
    padded = torch.zeros(grid[0] * BLOCK[0], grid[1] * BLOCK[1])
    padded[:rows, :columns] = weight
    largest = padded.abs().view(grid[0], BLOCK[0], grid[1], BLOCK[1]).amax((1, 3))
    scales = largest / LARGEST
    wide = scales.repeat_interleave(BLOCK[0], 0).repeat_interleave(BLOCK[1], 1)[:rows, :columns]
    codes = (weight / wide).to(torch.float8_e4m3fn)
    return codes, scales, (codes.to(torch.float32) * wide).to(torch.bfloat16)


def both_folders(tiny: Path, root: Path) -> tuple[Path, Path]:
    """Return a folder in eight bits, and one in bf16 with the same weights, both below ``root``."""
    from safetensors.torch import load_file, save_file

    scaled, plain = root / "scaled", root / "plain"
    for folder in (scaled, plain):
        shutil.copytree(tiny, folder)
    tensors = load_file(tiny / "model.safetensors")
    stored, meant = {}, {}
    for name, tensor in tensors.items():
        if not is_projection(name):
            stored[name] = meant[name] = tensor
            continue
        codes, scales, value = in_eight_bits(tensor.to(torch.float32))
        stored[name], stored[f"{name}_scale_inv"], meant[name] = codes, scales, value
    save_file(stored, scaled / "model.safetensors", {"format": "pt"})
    save_file(meant, plain / "model.safetensors", {"format": "pt"})
    config = json.loads((scaled / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": list(BLOCK),
    }
    (scaled / "config.json").write_text(json.dumps(config))
    return scaled, plain
