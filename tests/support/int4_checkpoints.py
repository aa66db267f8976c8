"""Tiny checkpoints with their projections in whole numbers of four bits, by compressed-tensors."""

from pathlib import Path

import numpy as np
import torch

from tests.support.checkpoint_folders import Tensor, stored
from tests.support.published_pairs import write_pair
from tests.support.scaled_folders import Scaled, packed, rounded_to_bf16, words_of

GROUP_COLUMNS = 32


def both_int4_folders(tiny: Path, root: Path) -> tuple[Path, Path]:
    """Return a folder in four bits, and one in bf16 with the same weights, both below ``root``."""
    stated = packed("group", group_size=GROUP_COLUMNS)
    return write_pair(tiny, root, stated, _publish)


def _publish(name: str, weight: torch.Tensor) -> tuple[dict[str, Tensor], torch.Tensor]:
    own = _nearest(weight.numpy())
    words = words_of(own.codes)
    published: dict[str, Tensor] = {
        f"{name}_packed": ("I32", words.shape, words.tobytes()),
        f"{name}_scale": ("BF16", own.scales.shape, stored(own.scales, "BF16")),
    }
    return published, torch.from_numpy(rounded_to_bf16(own.values())).to(torch.bfloat16)


def _nearest(values: np.ndarray) -> Scaled:
    """The levels nearest to weights, with a scale in bf16 for each group."""
    rows, columns = values.shape
    padded = np.pad(values, ((0, 0), (0, -columns % GROUP_COLUMNS)))
    groups = padded.reshape(rows, -1, GROUP_COLUMNS)
    scales = rounded_to_bf16((np.abs(groups).max(-1) / 7).astype(np.float32))
    levels = np.clip(np.rint(groups / scales[..., None]), -8, 7).reshape(rows, -1)[:, :columns]
    return Scaled((levels + 8).astype(np.uint8), scales, (1, GROUP_COLUMNS), bits=4)
