"""The random GGUF file of `make bench-gguf` is one that the program loads and runs."""

from pathlib import Path

import numpy as np
import peer
import pytest
from bench_gguf import Ours, exact_logits
from gguf_drive import add_vocabulary
from model_shapes import Shape

from benchmarks.calibrated.feeding import loaded
from runtime.protocol.values import WeightFormat
from runtime.telemetry.recorder import Counters
from tests.support.hand_made_plans import exact_plan

SHAPE = Shape(256, 256, 4, 2, 4, 2, 64, num_layers=2, vocabulary=512)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Q4_K", WeightFormat.Q4K_G32),
        ("Q4_K_M", WeightFormat.Q4K_G32),
        ("MXFP4", WeightFormat.MXFP4),
    ],
)
def test_random_file_is_run_in_our_format_and_near_its_numbers(
    tmp_path: Path, kind: str, expected: WeightFormat
) -> None:
    path = tmp_path / "random.gguf"
    peer.write_model(path, SHAPE, kind, add_vocabulary=add_vocabulary(SHAPE))
    with loaded(exact_plan(path), Counters()) as parts:
        assert parts.plan.expert_format is expected
        ours = Ours(parts)
        said = ours.greedy(6, 5)
        assert ours.greedy(6, 5) == said
        assert ours.prompt([5, *said[:-1]]) == said[-1]
        found = ours.logits([5, *said])
        # Of a small dense part what is in blocks has become f16.
        dense = sum(
            each.num_bytes
            for each in parts.store.dense_tensors.values()
            if each.name != "model.embed_tokens.weight"
        )
        bits = {"Q4_K": 4.5, "Q4_K_M": (2 * 4.5 + 6.5625) / 3, "MXFP4": 4.25}[kind]
        first_layer_bits = 4.5 if kind == "Q4_K_M" else bits
        experts = SHAPE.top_k * 3 * 256 * 256 * (first_layer_bits + bits) / 8
        assert ours.token_bytes == dense + experts
    assert ours.expert_format is expected
    exact = exact_logits(path, [5, *said])
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.1 * exact.std()
