"""A model by GPTQ or AWQ equals transformers' model of the weights that its formula gives."""

from pathlib import Path

import pytest
import torch

from runtime.kernels.base import Kernels
from runtime.kernels.reference import ReferenceKernels
from tests.support.level_checkpoints import both_level_folders
from tests.support.level_folders import STATED
from tests.support.model_bench import open_bench
from tests.support.tiny_checkpoints import VOCABULARY_SIZE, reference_model, tiny_checkpoint

TOLERANCE = 1e-4
ROUNDING_SHARE = 0.03
"""Of the logits' deviation: what eight bits of the activations may change, root mean square."""
PROMPT = torch.randint(
    3, VOCABULARY_SIZE, (40,), generator=torch.Generator().manual_seed(5)
).tolist()


@pytest.mark.parametrize(
    ("kind", "family", "left_alone"),
    [
        ("gptq", "qwen3_moe", None),
        ("gptq-eight", "qwen2_moe", None),
        ("gptq-zeros", "deepseek_v3", None),
        ("awq", "qwen3_moe", None),
        ("awq", "qwen3_moe", ".layers.0."),
        ("gptq", "qwen2_moe", ".down_proj"),
        ("awq", "llama", None),
    ],
)
def test_model_in_whole_levels_gives_the_logits_of_its_weights(
    tiny_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kernels: Kernels,
    kind: str,
    family: str,
    left_alone: str | None,
) -> None:
    tiny = tiny_checkpoint(tiny_root, family)
    published, plain = both_level_folders(tiny, tmp_path, STATED[kind], left_alone)
    reference = reference_model(plain)
    with torch.no_grad():
        exact = reference(torch.tensor([PROMPT])).logits[0]
        theirs = reference.generate(
            torch.tensor([PROMPT]), max_new_tokens=64, do_sample=False, eos_token_id=None
        )[0, len(PROMPT) :].tolist()
    with open_bench(published, kernels) as bench:
        fast = bench.feed_in_chunks(PROMPT, [7, 1, 13, 1, 1])
    # With activations as they are, which no kernel of grouped weights takes.
    monkeypatch.setattr("runtime.kernels.reference.as_input", lambda weight_format, x: x)
    with open_bench(published, ReferenceKernels()) as bench:
        chunked = bench.feed_in_chunks(PROMPT, [7, 1, 13, 1, 1])
        ours = bench.greedy(PROMPT, 64)

    torch.testing.assert_close(chunked, exact, atol=TOLERANCE, rtol=0)
    assert ours == theirs
    share = float((fast - exact).square().mean().sqrt() / exact.std())
    assert share < ROUNDING_SHARE
