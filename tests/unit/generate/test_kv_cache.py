import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.generate.kv_cache import KvCache
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.spec.attention import LatentAttentionSpec
from runtime.spec.blocks import NormSpec
from runtime.spec.footprint import KV_PAGE_TOKENS, kv_cache_bytes
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec
from tests.support.specs import grouped_attention

CONTEXT_TOKENS = 3 * KV_PAGE_TOKENS - 5
SPEC = ModelSpec(
    model_type="qwen2_moe",
    hidden_size=8,
    num_layers=2,
    attention=grouped_attention(2, 2, 1, 4),
    vocabulary_size=10,
    max_context_tokens=CONTEXT_TOKENS,
    norm=NormSpec(1e-6),
)
PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=CONTEXT_TOKENS), max_size=8)


def make_cache() -> tuple[KvCache, Ledger]:
    ledger = Ledger(kv_cache_bytes(SPEC, CONTEXT_TOKENS))
    return KvCache(ledger, SPEC, CONTEXT_TOKENS), ledger


def common_prefix(a: list[int], b: list[int]) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


@given(prompts=PROMPTS)
def test_kv_cache_any_prompts_keep_the_longest_common_prefix(prompts: list[list[int]]) -> None:
    cache, ledger = make_cache()
    held: list[int] = []
    for prompt in prompts:
        kept = cache.keep_prefix(prompt, len(prompt) - 1)
        assert kept == min(common_prefix(held, prompt), len(prompt) - 1)
        new_ids = prompt[kept:]
        cache.reserve(len(new_ids))
        for layer, pages in enumerate(cache.layers):
            for position in range(kept, len(prompt)):
                page, row = divmod(position, KV_PAGE_TOKENS)
                pages.keys[page][row] = 1000 * layer + position
                pages.values[page][row] = -1000 * layer - position
        cache.commit(new_ids)
        held = prompt
        cache.check()
        assert cache.num_tokens == len(prompt)
        for layer, pages in enumerate(cache.layers):
            for position in range(len(prompt)):
                page, row = divmod(position, KV_PAGE_TOKENS)
                assert pages.keys[page][row].tolist() == [[1000 * layer + position] * 4]
                assert pages.values[page][row].tolist() == [[-1000 * layer - position] * 4]
    cache.close()
    cache.close()
    assert ledger.held_bytes == 0


def test_kv_cache_whole_context_is_counted_from_the_beginning() -> None:
    cache, ledger = make_cache()

    assert ledger.by_kind()[MemoryPart.KV_CACHE] == ledger.limit_bytes
    with pytest.raises(LarderError) as refused:
        KvCache(ledger, SPEC, 1)
    assert refused.value.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    cache.close()


def test_kv_cache_beyond_the_context_is_refused() -> None:
    cache, _ = make_cache()
    cache.reserve(CONTEXT_TOKENS)
    cache.commit([0] * CONTEXT_TOKENS)

    with pytest.raises(ValueError, match="in a context of"):
        cache.reserve(1)

    cache.close()


def test_kv_cache_commit_without_pages_is_refused() -> None:
    cache, _ = make_cache()

    with pytest.raises(ValueError, match="no page"):
        cache.commit([1])

    cache.close()


MIXED = dataclasses.replace(
    SPEC,
    num_layers=4,
    attention=(
        *grouped_attention(1, 2, 1, 4),
        *grouped_attention(1, 2, 2, 64),
        *grouped_attention(1, 2, 1, 4),
        LatentAttentionSpec(
            num_heads=2,
            latent_dim=12,
            plain_dim=4,
            rope_dim=4,
            value_dim=4,
            query_dim=0,
            rope=RopeSpec(10000.0, 4),
            scale=1.0,
            norm_eps=1e-6,
        ),
    ),
)
"""Layers with pages of three shapes, the last with keys that are its values too."""


def test_kv_cache_layers_of_several_shapes_share_nothing() -> None:
    ledger = Ledger(kv_cache_bytes(MIXED, CONTEXT_TOKENS))
    cache = KvCache(ledger, MIXED, CONTEXT_TOKENS)
    assert ledger.held_bytes == ledger.limit_bytes
    cache.reserve(CONTEXT_TOKENS)
    cache.commit([0] * CONTEXT_TOKENS)
    cache.check()
    for layer, pages in enumerate(cache.layers):
        for page in range(3):
            pages.keys[page].fill_(100 * layer + page)
            if layer != 3:
                pages.values[page].fill_(-100 * layer - page - 1)

    for layer, pages in enumerate(cache.layers):
        kv = MIXED.attention[layer].kv
        assert pages.keys[0].shape == (KV_PAGE_TOKENS, kv.num_heads, kv.head_dim)
        for page in range(3):
            assert (pages.keys[page] == 100 * layer + page).all()
            value = 100 * layer + page if layer == 3 else -100 * layer - page - 1
            assert (pages.values[page] == value).all()
    cache.truncate(0)
    cache.check()
    cache.close()
    assert ledger.held_bytes == 0


def test_kv_cache_that_does_not_fit_gives_back_what_it_took() -> None:
    ledger = Ledger(kv_cache_bytes(MIXED, CONTEXT_TOKENS) - 1)
    with pytest.raises(LarderError):
        KvCache(ledger, MIXED, CONTEXT_TOKENS)
    assert ledger.held_bytes == 0
