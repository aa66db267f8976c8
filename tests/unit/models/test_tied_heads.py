"""A flag and a stored output matrix that contradict each other: what is stored is used."""

from pathlib import Path

import numpy as np
import pytest
import torch

from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.protocol.errors import ErrorCode
from tests.support.checkpoint_folders import (
    TinyModel,
    stored,
    tiny_config,
    tiny_tensors,
    write_json,
    write_safetensors,
    write_tokenizer,
)
from tests.support.model_bench import open_bench
from tests.support.tiny_checkpoints import reference_model

MODEL = TinyModel(dtype="F32", num_layers=2, num_experts=4, is_tied=True, num_shards=0)
PROMPT = torch.randint(3, 250, (20,), generator=torch.Generator().manual_seed(2)).tolist()
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def write(folder: Path, flag: bool | None, head: str) -> Path:
    """Write a model whose output matrix is not stored, like the embedding, or another."""
    folder.mkdir()
    config = {**tiny_config(MODEL), "tie_word_embeddings": flag}
    if flag is None:
        del config["tie_word_embeddings"]
    write_json(folder / "config.json", config)
    write_tokenizer(folder)
    tensors = tiny_tensors(MODEL)
    dtype, shape, data = tensors[EMBEDDING]
    if head == "other":
        values = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
        data = stored(values, dtype)
    if head != "none":
        tensors[HEAD] = (dtype, shape, data)
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def answer_of(folder: Path, kernels: Kernels) -> tuple[torch.Tensor, list[int]]:
    with open_bench(folder, kernels) as bench:
        return bench.feed_in_chunks(PROMPT, []), bench.greedy(PROMPT, 64)


@pytest.mark.parametrize(
    ("flag", "head", "is_embedding"),
    [
        (True, "equal", True),
        (False, "equal", True),
        (None, "equal", True),
        (True, "other", False),
        (False, "other", False),
        (None, "other", False),
    ],
)
def test_stored_output_matrix_gives_the_logits_and_else_the_embedding(
    tmp_path: Path, kernels: Kernels, flag: bool | None, head: str, is_embedding: bool
) -> None:
    tied, tied_ids = answer_of(write(tmp_path / "tied", True, "none"), kernels)
    logits, ids = answer_of(write(tmp_path / "m", flag, head), kernels)
    assert torch.equal(logits, tied) == is_embedding
    assert (ids == tied_ids) == is_embedding
    with torch.no_grad():
        theirs = reference_model(tmp_path / "m")(torch.tensor([PROMPT])).logits[0]
    torch.testing.assert_close(logits, theirs, atol=1e-4, rtol=0)


@pytest.mark.parametrize("flag", [False, None])
def test_missing_output_matrix_that_is_not_the_embedding_is_never_made_up(
    tmp_path: Path, flag: bool | None
) -> None:
    (problem,) = inspect_folder(str(write(tmp_path / "m", flag, "none"))).report.problems
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters["tensor"] == HEAD
