"""A GGUF file's model equals transformers' model of the numbers that stand in the file."""

from pathlib import Path

import pytest
import torch

from runtime.inspect.gguf import roles
from runtime.kernels.base import Kernels
from runtime.kernels.reference import ReferenceKernels
from runtime.protocol.chat import ChatMessage, Role
from runtime.tokenizer.chat import ChatTokenizer
from tests.support.gguf_checkpoints import write_both
from tests.support.model_bench import open_bench
from tests.support.tiny_checkpoints import VOCABULARY_SIZE, reference_model, tiny_checkpoint

TOLERANCE = 1e-4
ROUNDED_SHARE = 0.05
"""Of the logits' deviation: what levels and activations of eight bits change, root mean square."""
PROMPT = torch.randint(
    3, VOCABULARY_SIZE, (40,), generator=torch.Generator().manual_seed(5)
).tolist()


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("llama_biased_linear", "F32"),
        ("qwen3", "Q8_0"),
        ("mixtral", "Q4_0"),
        ("qwen3_moe", "MXFP4"),
        ("qwen2_moe", "Q5_0"),
        ("olmoe", "Q8_0"),
        ("deepseek_v2_groups_bf16", "BF16"),
        ("glm4_moe", "Q8_0"),
        ("minimax_m2", "Q4_0"),
        ("ernie4_5_moe", "F16"),
    ],
)
def test_model_in_exact_kinds_gives_the_logits_of_its_numbers(
    tiny_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, kind: str
) -> None:
    tiny = tiny_checkpoint(tiny_root, family)
    path, plain = write_both(tiny, tmp_path, kind)
    reference = reference_model(plain)
    with torch.no_grad():
        exact = reference(torch.tensor([PROMPT])).logits[0]
    # Every matrix in its own kind, with activations as they are.
    monkeypatch.setattr(roles, "MAX_PLAIN_WEIGHTS", 0)
    monkeypatch.setattr("runtime.kernels.reference.as_input", lambda weight_format, x: x)
    with open_bench(path, ReferenceKernels()) as bench:
        found = bench.feed_in_chunks(PROMPT, [7, 1, 13, 1, 1])
    torch.testing.assert_close(found, exact, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize(("family", "kind"), [("olmoe", "Q4_1"), ("olmoe", "Q5_1")])
def test_model_in_other_kinds_is_near_its_numbers(
    tiny_root: Path, tmp_path: Path, kernels: Kernels, family: str, kind: str
) -> None:
    path, plain = write_both(tiny_checkpoint(tiny_root, family), tmp_path, kind)
    with torch.no_grad():
        exact = reference_model(plain)(torch.tensor([PROMPT])).logits[0]
    with open_bench(path, kernels) as bench:
        found = bench.feed(PROMPT)
    assert float((found - exact).square().mean().sqrt() / exact.std()) < ROUNDED_SHARE


def test_vocabulary_of_the_file_gives_the_ids_of_its_folder(
    tiny_root: Path, tmp_path: Path
) -> None:
    tiny = tiny_checkpoint(tiny_root, "qwen3")
    path, _ = write_both(tiny, tmp_path, "F16")
    talk = [ChatMessage(role=Role.USER, text="Süße Äpfel, 東京: what is the capital of France?")]
    assert ChatTokenizer.load(path).encode_conversation(talk) == (
        ChatTokenizer.load(tiny).encode_conversation(talk)
    )
