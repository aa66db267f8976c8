"""Tiny checkpoints with their projections as GPTQ and AWQ publish them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.support.checkpoint_folders import Tensor
from tests.support.level_folders import nearest_published, packed_tensors
from tests.support.published_pairs import write_pair


def both_level_folders(
    tiny: Path, root: Path, stated: Mapping[str, Any], left_alone: str | None = None
) -> tuple[Path, Path]:
    """Return a folder by the method, and one in f32 with the weights of its formula.

    Projections with ``left_alone`` in their names are published in f16.
    """

    def publish(name: str, weight: torch.Tensor) -> tuple[dict[str, Tensor], torch.Tensor]:
        own = nearest_published(stated, weight.numpy())
        stored = packed_tensors(stated, name.removesuffix(".weight"), own)
        return stored, torch.from_numpy(own.values())

    return write_pair(tiny, root, stated, publish, kept=torch.float16, left_alone=left_alone)
