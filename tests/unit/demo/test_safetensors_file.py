"""Tests of the bfloat16 writer against the library that reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import safe_open

from resources.demo.rounding import to_bf16_bits
from resources.demo.safetensors_file import write_bf16_file


def test_written_file_is_read_back_by_the_library(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    tensors = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in (("a", (3, 4)), ("b", (5,)), ("odd", (1, 1)))
    }
    shapes = {name: values.shape for name, values in tensors.items()}
    path = tmp_path / "x.safetensors"
    num_bytes = write_bf16_file(path, shapes, tensors.__getitem__)
    assert num_bytes == 2 * (12 + 5 + 1)
    with safe_open(path, framework="numpy") as file:
        assert set(file.keys()) == set(tensors)
        for name in tensors:
            part = file.get_slice(name)
            assert part.get_dtype() == "BF16"
            assert tuple(part.get_shape()) == shapes[name]
    body = np.frombuffer(path.read_bytes()[-num_bytes:], "<u2")
    expected = np.concatenate([to_bf16_bits(values).ravel() for values in tensors.values()])
    np.testing.assert_array_equal(body, expected)
