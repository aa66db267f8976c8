"""A gpt-oss folder in MXFP4 equals transformers' model of the numbers that it stands for."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
import torch

from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.kernels.reference import ReferenceKernels
from runtime.prepare.prepare import prepare_model
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId
from runtime.store.checkpoint import CheckpointStore
from runtime.store.prepared import PreparedStore
from tests.support.model_bench import open_bench
from tests.support.packed_folders import write_packed, write_plain
from tests.support.tiny_checkpoints import reference_model

TOLERANCE = 1e-4
ROUNDING_SHARE = 0.03
"""Of the logits' deviation: what eight bits of the activations may change, root mean square."""
PROMPT = torch.randint(3, 256, (40,), generator=torch.Generator().manual_seed(5)).tolist()


@pytest.fixture
def plain_activations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed weights are multiplied with activations as they are, which no kernel does."""
    monkeypatch.setattr("runtime.kernels.reference.as_input", lambda weight_format, x: x)


@pytest.mark.usefixtures("plain_activations")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_packed_folder_computes_what_its_numbers_say(tmp_path: Path, seed: int) -> None:
    folder = write_packed(tmp_path / "packed", seed)
    reference = reference_model(write_plain(tmp_path / "plain", seed))
    with torch.no_grad():
        expected = reference(torch.tensor([PROMPT])).logits[0]
        theirs = reference.generate(
            torch.tensor([PROMPT]), max_new_tokens=64, do_sample=False, eos_token_id=None
        )[0, len(PROMPT) :].tolist()
    with open_bench(folder, ReferenceKernels()) as bench:
        whole = bench.feed_in_chunks(PROMPT, [])
        chunked = bench.feed_in_chunks(PROMPT, [7, 1, 13, 1, 1])
        ours = bench.greedy(PROMPT, 64)

    assert expected.std() > 0.5
    torch.testing.assert_close(whole, expected, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(chunked, expected, atol=TOLERANCE, rtol=0)
    assert ours == theirs


def test_packed_folder_with_fast_kernels_differs_by_rounding_of_activations_alone(
    tmp_path: Path, kernels: Kernels
) -> None:
    folder = write_packed(tmp_path / "packed")
    reference = reference_model(write_plain(tmp_path / "plain", 0))
    with torch.no_grad():
        exact = reference(torch.tensor([PROMPT])).logits[0]
    with open_bench(folder, kernels) as bench:
        whole = bench.feed_in_chunks(PROMPT, [])
        chunked = bench.feed_in_chunks(PROMPT, [7, 1, 13, 1, 1])

    share = float((whole - exact).square().mean().sqrt() / exact.std())
    assert share < ROUNDING_SHARE
    if kernels.is_row_invariant:
        assert torch.equal(whole, chunked)


def test_prepared_copy_holds_the_same_records(tmp_path: Path) -> None:
    inspection = inspect_folder(str(write_packed(tmp_path / "packed")))
    copy = prepare_model(inspection, WeightFormat.MXFP4, str(tmp_path / "copy"))
    with (
        contextlib.closing(CheckpointStore(inspection)) as published,
        contextlib.closing(PreparedStore(Path(copy.folder))) as prepared,
    ):
        assert published.layout == prepared.layout
        records = []
        for store in (published, prepared):
            record = np.zeros(store.layout.record_bytes, np.uint8)
            store.read_expert(ExpertId(1, 3), record.data)
            records.append(record)
        names = set(prepared.dense_tensors)
        assert names == set(published.dense_tensors)
    np.testing.assert_array_equal(records[0], records[1])
    assert records[0].any()
    assert "model.layers.1.mlp.experts.gate_up_proj_bias" in names
