"""Writing of the committed derived files from fitted assignments and routers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from resources.demo.derived import DERIVED_FILES
from resources.demo.rounding import FloatArray
from resources.demo.split import SplitShape


def save_derived(
    folder: Path,
    shape: SplitShape,
    assignment: npt.NDArray[np.uint8],
    routers: list[FloatArray],
) -> None:
    """Write the derived files; routers are kept as 8-bit values with a scale per expert.

    What all experts of a layer share in their scores does not change their order and is taken
    out first, so that the bits are spent on what differs.
    """
    parts: list[dict[str, npt.NDArray[np.generic]]] = [{} for _ in DERIVED_FILES]
    sizes = (shape.num_experts, shape.expert_size, shape.shared_size, shape.top_k)
    parts[0]["split"] = np.asarray(sizes, np.int32)
    parts[0]["assignment"] = assignment.astype(np.uint8)
    for layer, given in enumerate(routers):
        router = given - given.mean(axis=0, keepdims=True)
        scale = np.abs(router).max(axis=1) / np.float32(127)
        part = parts[layer * len(parts) // len(routers)]
        part[f"router.{layer}"] = np.rint(router / scale[:, None]).astype(np.int8)
        part[f"router_scale.{layer}"] = scale.astype(np.float32)
    for name, part in zip(DERIVED_FILES, parts, strict=True):
        save_file({key: np.ascontiguousarray(value) for key, value in part.items()}, folder / name)
