"""The committed derived data: which channel belongs to which expert, and the routers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file

from resources.demo.failure import DemoBuildError
from resources.demo.rounding import FloatArray
from resources.demo.split import SplitShape

DERIVED_FILES = ("derived-0.safetensors", "derived-1.safetensors")
"""Names of the committed files; each holds the routers of half of the layers."""


@dataclass(frozen=True)
class Derived:
    """Assignment (layers x channels) and one router (experts x hidden) per layer."""

    shape: SplitShape
    assignment: npt.NDArray[np.uint8]
    routers: list[FloatArray]


def load_derived(folder: Path) -> Derived:
    """Return the derived data of a folder; raise DemoBuildError when it is incomplete."""
    tensors: dict[str, npt.NDArray[np.generic]] = {}
    try:
        for name in DERIVED_FILES:
            tensors.update(load_file(folder / name))
        sizes = [int(value) for value in tensors["split"]]
        assignment = tensors["assignment"].astype(np.uint8)
        routers = [
            _router(tensors[f"router.{layer}"], tensors[f"router_scale.{layer}"])
            for layer in range(len(assignment))
        ]
        return Derived(SplitShape(*sizes), assignment, routers)
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as cause:
        raise DemoBuildError(
            f"The derived data of the demo model cannot be read: {cause}."
        ) from cause


def _router(values: npt.NDArray[np.generic], scale: npt.NDArray[np.generic]) -> FloatArray:
    """Return a router from 8-bit values with one scale per expert."""
    router: FloatArray = values.astype(np.float32) * scale.astype(np.float32)[:, None]
    return router
