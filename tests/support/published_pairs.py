"""Tiny checkpoints twice: with projections in few bits, and with what those stand for."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from tests.support.checkpoint_folders import Tensor, write_json, write_safetensors

Publish = Callable[[str, torch.Tensor], tuple[Mapping[str, Tensor], torch.Tensor]]
"""Takes a projection's name and weights in f32; returns what is stored of it, and what that means.
"""
_PROJECTION = re.compile(r"(_proj|_proj_with_mqa|\.w[123])\.weight$")
"""What published checkpoints store in few bits: not the ends, norms and routers."""
_NAMES = {torch.float32: "F32", torch.float16: "F16", torch.float8_e4m3fn: "F8_E4M3"}


def write_pair(
    tiny: Path,
    root: Path,
    stated: Mapping[str, Any],
    publish: Publish,
    kept: torch.dtype = torch.float32,
    left_alone: str | None = None,
) -> tuple[Path, Path]:
    """Return the folder that states a method, and the plain one, both below ``root``.

    ``kept`` is the type of all other tensors of the first, also of projections with
    ``left_alone`` in their names.
    """
    from safetensors.torch import load_file, save_file

    published, plain = root / "published", root / "plain"
    for folder in (published, plain):
        shutil.copytree(tiny, folder)
    stored: dict[str, Tensor] = {}
    meant: dict[str, torch.Tensor] = {}
    for name, tensor in load_file(tiny / "model.safetensors").items():
        is_left = left_alone is not None and left_alone in name
        if _PROJECTION.search(name) and not is_left:
            parts, meant[name] = publish(name, tensor.to(torch.float32))
            stored |= parts
        else:
            other = tensor.to(kept)
            stored[name], meant[name] = tensor_of(other), other.to(torch.float32)
    write_safetensors(published / "model.safetensors", stored)
    save_file(meant, plain / "model.safetensors", {"format": "pt"})
    config = json.loads((published / "config.json").read_text(encoding="utf-8"))
    write_json(published / "config.json", config | {"quantization_config": dict(stated)})
    return published, plain


def tensor_of(values: torch.Tensor) -> Tensor:
    """Return a tensor as it is written."""
    data = values.contiguous().reshape(-1).view(torch.uint8).numpy()
    return (_NAMES[values.dtype], tuple(values.shape), data.tobytes())
