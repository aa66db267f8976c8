"""Every family equals transformers on tiny checkpoints, in any chunking and at any budget."""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.errors import CancelledError, LarderError
from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.kernels.reference import ReferenceKernels
from runtime.models.families import FAMILIES, build_model
from runtime.protocol.errors import ErrorCode
from tests.support.model_bench import ModelBench, open_bench
from tests.support.tiny_checkpoints import (
    VOCABULARY_SIZE,
    reference_model,
    tiny_checkpoint,
)
from tests.support.tiny_variants import VARIANTS

NUM_TOKENS = 40
TOLERANCE = 1e-4
CHUNKS = st.lists(st.integers(1, 25), max_size=10)


@functools.cache
def prompt_ids(seed: int = 5) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    ids: list[int] = torch.randint(3, VOCABULARY_SIZE, (NUM_TOKENS,), generator=generator).tolist()
    return ids


@functools.cache
def reference(folder: Path) -> Any:
    return reference_model(folder)


@pytest.fixture(params=VARIANTS, scope="module")
def folder(request: pytest.FixtureRequest, tiny_root: Path) -> Path:
    return tiny_checkpoint(tiny_root, request.param)


@pytest.fixture(scope="module")
def bench(folder: Path, kernels: Kernels) -> Iterator[ModelBench]:
    with open_bench(folder, kernels) as opened:
        yield opened


@pytest.fixture(scope="module")
def expected(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = reference(folder)(torch.tensor([prompt_ids()])).logits[0]
    return logits


@pytest.fixture(scope="module")
def whole(bench: ModelBench) -> torch.Tensor:
    return bench.feed_in_chunks(prompt_ids(), [])


def test_family_logits_equal_transformers(whole: torch.Tensor, expected: torch.Tensor) -> None:
    assert expected.std() > 0.5
    torch.testing.assert_close(whole, expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [name for name in VARIANTS if name == VARIANTS[name].model_type])
def test_family_of_another_seed_logits_equal_transformers(
    tiny_root: Path, kernels: Kernels, name: str, seed: int
) -> None:
    folder = tiny_checkpoint(tiny_root, name, seed=seed)
    with torch.no_grad():
        expected = reference_model(folder)(torch.tensor([prompt_ids(seed)])).logits[0]
    with open_bench(folder, kernels) as bench:
        logits = bench.feed_in_chunks(prompt_ids(seed), [11, 2])

    torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)


def test_family_reference_kernels_logits_equal_transformers(
    folder: Path, expected: torch.Tensor
) -> None:
    with open_bench(folder, ReferenceKernels()) as bench:
        logits = bench.feed_in_chunks(prompt_ids(), [7, 1])

    torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)


def test_family_64_greedy_tokens_equal_transformers(bench: ModelBench, folder: Path) -> None:
    theirs: list[int] = []
    fed = torch.tensor([prompt_ids()])
    past = None
    with torch.no_grad():
        while len(theirs) < 64:
            step = reference(folder)(fed, cache=past, use_cache=True)
            past = step.cache
            theirs.append(int(step.logits[0, -1].argmax()))
            fed = torch.tensor([theirs[-1:]])

    assert bench.greedy(prompt_ids(), 64) == theirs


@given(sizes=CHUNKS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_family_any_chunking_gives_the_same_bits(
    bench: ModelBench, whole: torch.Tensor, kernels: Kernels, sizes: list[int]
) -> None:
    logits = bench.feed_in_chunks(prompt_ids(), sizes)

    if kernels.is_row_invariant:
        assert torch.equal(logits, whole)
    torch.testing.assert_close(logits, whole, atol=TOLERANCE, rtol=0)


def test_family_token_by_token_gives_the_same_bits(
    bench: ModelBench, whole: torch.Tensor, kernels: Kernels
) -> None:
    logits = bench.feed_in_chunks(prompt_ids(), [1] * NUM_TOKENS)

    if kernels.is_row_invariant:
        assert torch.equal(logits, whole)
    torch.testing.assert_close(logits, whole, atol=TOLERANCE, rtol=0)


@given(spare_slots=st.integers(0, 3), sizes=CHUNKS)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_family_any_budget_gives_the_same_bits(
    folder: Path,
    kernels: Kernels,
    bench: ModelBench,
    whole: torch.Tensor,
    spare_slots: int,
    sizes: list[int],
) -> None:
    num_slots = min(bench.spec.num_experts, bench.spec.top_k + spare_slots)
    with open_bench(folder, kernels, num_slots) as small:
        logits = small.feed_in_chunks(prompt_ids(), sizes)
        assert small.drive_bytes_read > 0
        if num_slots < bench.spec.num_experts:
            assert small.counters.expert_misses > small.experts.num_resident

    if kernels.is_row_invariant:
        assert torch.equal(logits, whole)
    torch.testing.assert_close(logits, whole, atol=TOLERANCE, rtol=0)


def test_family_kept_prefix_gives_the_same_bits(
    bench: ModelBench, whole: torch.Tensor, kernels: Kernels
) -> None:
    ids = prompt_ids()
    bench.feed_in_chunks([*ids[:23], *prompt_ids(6)], [])

    kept = bench.kv.keep_prefix(ids, NUM_TOKENS - 1)
    logits = bench.feed(ids[kept:])

    assert kept >= 23
    if kernels.is_row_invariant:
        assert torch.equal(logits, whole[kept:])
    torch.testing.assert_close(logits, whole[kept:], atol=TOLERANCE, rtol=0)


def test_family_chunk_ended_after_a_layer_can_be_computed_again(
    bench: ModelBench, whole: torch.Tensor
) -> None:
    ids = prompt_ids()

    def stop_after_second_layer(layer: int) -> None:
        if layer == 1:
            raise CancelledError

    bench.feed_in_chunks(ids[:10], [])
    with pytest.raises(CancelledError):
        bench.feed(ids[10:], stop_after_second_layer)

    assert bench.kv.num_tokens == 10
    torch.testing.assert_close(bench.feed(ids[10:]), whole[10:], atol=TOLERANCE, rtol=0)


def test_build_model_unknown_family_names_the_supported_ones(
    tiny_root: Path, kernels: Kernels
) -> None:
    spec = inspect_folder(str(tiny_checkpoint(tiny_root, "mixtral"))).spec
    assert spec is not None
    with open_bench(tiny_checkpoint(tiny_root, "mixtral"), kernels) as bench:
        strange = dataclasses.replace(spec, model_type="mamba")
        with pytest.raises(LarderError) as refused:
            build_model(strange, kernels, bench.dense, bench.experts, 8)

    assert refused.value.code is ErrorCode.ARCHITECTURE_UNSUPPORTED
    assert str(refused.value.parameters["supported"]).split(", ") == sorted(FAMILIES)
