"""A checkpoint in which one weight is no number."""

import contextlib
import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from safetensors.torch import load_file, save_file


@contextlib.contextmanager
def spoilt_expert(folder: Path, layer: int, expert: int, matrix: str) -> Iterator[tuple[Path, str]]:
    """Give a copy of a folder with one file, and what a person is told of its matrix."""
    name = f"model.layers.{layer}.mlp.experts.{expert}.{matrix}.weight"
    with tempfile.TemporaryDirectory() as scratch:
        spoilt = Path(shutil.copytree(folder, Path(scratch) / "spoilt"))
        (path,) = spoilt.glob("*.safetensors")
        tensors = load_file(path)
        tensors[name].view(-1)[3] = math.nan
        save_file(tensors, path, metadata={"format": "pt"})
        yield spoilt, f"The matrix {name} in {path}"
