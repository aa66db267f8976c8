"""Tiny checkpoints with their projections as GPTQ and AWQ publish them."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.support.checkpoint_folders import Tensor, write_safetensors
from tests.support.eight_bit_checkpoints import is_projection
from tests.support.level_folders import nearest_published, packed_tensors


def both_level_folders(tiny: Path, root: Path, stated: Mapping[str, Any]) -> tuple[Path, Path]:
    """Return a folder by the method, and one in f32 with the weights of its formula."""
    from safetensors.torch import load_file, save_file

    published, plain = root / "published", root / "plain"
    for folder in (published, plain):
        shutil.copytree(tiny, folder)
    stored: dict[str, Tensor] = {}
    meant: dict[str, torch.Tensor] = {}
    for name, tensor in load_file(tiny / "model.safetensors").items():
        half = tensor.to(torch.float16)
        if not is_projection(name):
            stored[name] = ("F16", tuple(half.shape), half.numpy().tobytes())
            meant[name] = half.to(torch.float32)
            continue
        own = nearest_published(stated, tensor.to(torch.float32).numpy())
        stored |= packed_tensors(stated, name.removesuffix(".weight"), own)
        meant[name] = torch.from_numpy(own.values())
    write_safetensors(published / "model.safetensors", stored)
    save_file(meant, plain / "model.safetensors", {"format": "pt"})
    config = json.loads((published / "config.json").read_text())
    config["quantization_config"] = dict(stated)
    (published / "config.json").write_text(json.dumps(config))
    return published, plain
