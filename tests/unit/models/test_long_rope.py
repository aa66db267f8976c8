"""Contexts longer than a model's original one: LongRoPE's long factors, in any chunking."""

import functools
import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.kernels.base import Kernels
from tests.support.model_bench import CONTEXT_TOKENS, open_bench
from tests.support.tiny_checkpoints import VOCABULARY_SIZE, reference_model, tiny_checkpoint

TOLERANCE = 1e-3
ORIGINAL_TOKENS = 64
NUM_GREEDY_TOKENS = 64
PROMPT: list[int] = torch.randint(
    3, VOCABULARY_SIZE, (100,), generator=torch.Generator().manual_seed(11)
).tolist()


@pytest.fixture
def folder(tiny_root: Path, tmp_path: Path) -> Path:
    """A model that was first trained on shorter texts than a session has room for."""
    copy = tmp_path / "long"
    shutil.copytree(tiny_checkpoint(tiny_root, "phimoe"), copy)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    rope = {
        "original_max_position_embeddings": ORIGINAL_TOKENS,
        "short_mscale": 1.1,
        "long_mscale": 1.3,
    }
    config["rope_parameters"] |= rope
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert ORIGINAL_TOKENS < len(PROMPT) < len(PROMPT) + NUM_GREEDY_TOKENS < CONTEXT_TOKENS
    return copy


def reference_of(folder: Path, num_tokens: int) -> Any:
    """Transformers' model, told how long the text is.

    Its Phi-MoE forgets to tell its own function for LongRoPE, which takes the short factors then.
    """
    model = reference_model(folder)
    rope = importlib.import_module("transformers.modeling_rope_utils")
    told = functools.partial(rope.ROPE_INIT_FUNCTIONS["longrope"], seq_len=num_tokens)
    model.model.rotary_emb.rope_init_fn = told
    return model


def test_positions_beyond_the_original_context_take_the_long_factors(
    folder: Path, kernels: Kernels
) -> None:
    reference = reference_of(folder, len(PROMPT))
    with torch.no_grad():
        expected = reference(torch.tensor([PROMPT])).logits[0]
        theirs = reference.generate(
            torch.tensor([PROMPT]),
            max_new_tokens=NUM_GREEDY_TOKENS,
            do_sample=False,
            eos_token_id=None,
        )[0, len(PROMPT) :].tolist()
        short = reference_of(folder, ORIGINAL_TOKENS)(torch.tensor([PROMPT])).logits[0]
    with open_bench(folder, kernels) as bench:
        whole = bench.feed_in_chunks(PROMPT, [])
        # Pieces that end before, at and behind the border, and single tokens over it.
        chunked = bench.feed_in_chunks(PROMPT, [7, ORIGINAL_TOKENS - 9, 1, 1, 1, 1, 20])
        ours = bench.greedy(PROMPT, NUM_GREEDY_TOKENS)

    assert (expected - short).abs().max() > 100 * TOLERANCE
    torch.testing.assert_close(whole, expected, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(chunked, expected, atol=TOLERANCE, rtol=0)
    assert ours == theirs
