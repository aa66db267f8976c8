"""Writer of safetensors files in bfloat16, tensor by tensor.

The library's own numpy writer has no bfloat16 and wants every tensor in memory at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from resources.demo.rounding import FloatArray, to_bf16_bits

_HEADER_ALIGNMENT_BYTES = 8


def write_bf16_file(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]],
    tensor: Callable[[str], FloatArray],
) -> int:
    """Write and sync one file, asking for each tensor in turn; return the tensors' bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        num_bytes = 2
        for length in shape:
            num_bytes *= length
        header[name] = {
            "dtype": "BF16",
            "shape": list(shape),
            "data_offsets": [end, end + num_bytes],
        }
        end += num_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _HEADER_ALIGNMENT_BYTES)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name, shape in shapes.items():
            values = tensor(name)
            assert values.shape == shape, f"{name} is {values.shape}, announced as {shape}"
            file.write(to_bf16_bits(values).astype("<u2", copy=False).tobytes())
        file.flush()
        os.fsync(file.fileno())
    return end
