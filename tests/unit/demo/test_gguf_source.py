"""Tests of the reader of the dense model's file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from resources.demo.failure import DemoBuildError
from resources.demo.gguf_source import GgufSource, undo_rotary_permutation


def _llama_cpp_order(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """What llama.cpp's converter does to q and k."""
    rows, columns = weight.shape
    return (
        weight.reshape(num_heads, 2, rows // num_heads // 2, columns)
        .swapaxes(1, 2)
        .reshape(rows, columns)
    )


@pytest.mark.parametrize(("num_heads", "head_size"), [(1, 2), (3, 4), (9, 64)])
def test_undo_rotary_permutation_of_converted_rows_gives_back_the_rows(
    num_heads: int, head_size: int
) -> None:
    weight = np.random.default_rng(1).normal(size=(num_heads * head_size, 5)).astype(np.float32)
    undone = undo_rotary_permutation(_llama_cpp_order(weight, num_heads), num_heads)
    np.testing.assert_array_equal(undone, weight)


def test_undo_rotary_permutation_pulls_neighbours_half_a_head_apart() -> None:
    rows = np.arange(4, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(undo_rotary_permutation(rows, 1)[:, 0], [0, 2, 1, 3])


def test_gguf_source_on_other_bytes_raises_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"not a model at all, but long enough to be looked at")
    with pytest.raises(DemoBuildError, match="cannot be read"):
        GgufSource(path)
