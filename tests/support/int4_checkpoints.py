"""Tiny checkpoints with their projections in whole numbers of four bits, by compressed-tensors."""

import json
import shutil
from pathlib import Path

import numpy as np
import torch

from tests.support.checkpoint_folders import Tensor, stored, write_safetensors
from tests.support.eight_bit_checkpoints import is_projection
from tests.support.scaled_folders import Scaled, packed, rounded_to_bf16, words_of

GROUP_COLUMNS = 32


def both_int4_folders(tiny: Path, root: Path) -> tuple[Path, Path]:
    """Return a folder in four bits, and one in bf16 with the same weights, both below ``root``."""
    from safetensors.torch import load_file, save_file

    scaled, plain = root / "scaled", root / "plain"
    for folder in (scaled, plain):
        shutil.copytree(tiny, folder)
    published: dict[str, Tensor] = {}
    meant: dict[str, torch.Tensor] = {}
    for name, tensor in load_file(tiny / "model.safetensors").items():
        values = tensor.to(torch.float32)
        if not is_projection(name):
            published[name] = ("F32", tuple(values.shape), values.numpy().tobytes())
            meant[name] = values
            continue
        own = _nearest(values.numpy())
        words = words_of(own.codes)
        published[f"{name}_packed"] = ("I32", words.shape, words.tobytes())
        published[f"{name}_scale"] = ("BF16", own.scales.shape, stored(own.scales, "BF16"))
        meant[name] = torch.from_numpy(rounded_to_bf16(own.values())).to(torch.bfloat16)
    write_safetensors(scaled / "model.safetensors", published)
    save_file(meant, plain / "model.safetensors", {"format": "pt"})
    config = json.loads((scaled / "config.json").read_text())
    config["quantization_config"] = packed("group", group_size=GROUP_COLUMNS)
    (scaled / "config.json").write_text(json.dumps(config))
    return scaled, plain


def _nearest(values: np.ndarray) -> Scaled:
    """The levels nearest to weights, with a scale in bf16 for each group."""
    rows, columns = values.shape
    padded = np.pad(values, ((0, 0), (0, -columns % GROUP_COLUMNS)))
    groups = padded.reshape(rows, -1, GROUP_COLUMNS)
    scales = rounded_to_bf16((np.abs(groups).max(-1) / 7).astype(np.float32))
    levels = np.clip(np.rint(groups / scales[..., None]), -8, 7).reshape(rows, -1)[:, :columns]
    return Scaled((levels + 8).astype(np.uint8), scales, (1, GROUP_COLUMNS), bits=4)
