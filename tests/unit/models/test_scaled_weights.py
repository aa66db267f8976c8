"""A model in eight bits answers like the one that its weights stand for, and like transformers."""

from pathlib import Path

import pytest
import torch

from runtime.kernels.base import Kernels
from tests.support.eight_bit_checkpoints import both_folders
from tests.support.model_bench import open_bench
from tests.support.tiny_checkpoints import VOCABULARY_SIZE, reference_model, tiny_checkpoint


@pytest.mark.parametrize("name", ["deepseek_v3", "qwen3_moe"])
def test_model_in_eight_bits_gives_the_logits_of_its_weights(
    tiny_root: Path, tmp_path: Path, kernels: Kernels, name: str
) -> None:
    scaled, plain = both_folders(tiny_checkpoint(tiny_root, name), tmp_path)
    generator = torch.Generator().manual_seed(7)
    ids: list[int] = torch.randint(3, VOCABULARY_SIZE, (40,), generator=generator).tolist()
    with open_bench(scaled, kernels, 4) as bench:
        logits = bench.feed_in_chunks(ids, [7, 1, 13])
        chosen = bench.greedy(ids, 24)
    with open_bench(plain, kernels) as bench:
        expected = bench.feed_in_chunks(ids, [])
        assert bench.greedy(ids, 24) == chosen
    with torch.no_grad():
        theirs = reference_model(plain)(torch.tensor([ids])).logits[0]

    torch.testing.assert_close(
        logits, expected, atol=0 if kernels.is_row_invariant else 1e-4, rtol=0
    )
    torch.testing.assert_close(logits, theirs, atol=1e-4, rtol=0)
