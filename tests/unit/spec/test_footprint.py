from hypothesis import given
from hypothesis import strategies as st

from runtime.protocol.values import WeightFormat
from runtime.spec.blocks import NormSpec, Routing
from runtime.spec.footprint import (
    KV_PAGE_TOKENS,
    PREFILL_CHUNK_TOKENS,
    dense_tensor_bytes,
    kv_cache_bytes,
    prefill_chunk_tokens,
    work_bytes,
)
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import TensorEntry
from tests.support.specs import grouped_attention

SPEC = ModelSpec(
    model_type="qwen3_moe",
    hidden_size=64,
    num_layers=3,
    attention=grouped_attention(3, 4, 2, 16),
    vocabulary_size=320,
    max_context_tokens=4096,
    norm=NormSpec(1e-6),
    moe_layers=(0, 1, 2),
    num_experts=8,
    routing=Routing(top_k=2),
    expert_width=32,
)


@given(context_tokens=st.integers(1, 4096), room_bytes=st.integers(0, 4_000_000))
def test_prefill_chunk_is_the_largest_that_fits(context_tokens: int, room_bytes: int) -> None:
    chunk_tokens = prefill_chunk_tokens(SPEC, context_tokens, room_bytes)

    most = min(PREFILL_CHUNK_TOKENS, context_tokens)
    assert 1 <= chunk_tokens <= most
    assert chunk_tokens == 1 or work_bytes(SPEC, context_tokens, chunk_tokens) <= room_bytes
    if chunk_tokens < most:
        assert work_bytes(SPEC, context_tokens, chunk_tokens + 1) > room_bytes


@given(context_tokens=st.integers(1, 4096))
def test_kv_cache_bytes_are_whole_pages_of_every_layer(context_tokens: int) -> None:
    per_token = SPEC.attention[0].kv.num_channels * 4
    num_pages = -(-context_tokens // KV_PAGE_TOKENS)

    assert kv_cache_bytes(SPEC, context_tokens) == 3 * num_pages * KV_PAGE_TOKENS * per_token


def test_dense_tensor_bytes_vectors_as_f32_matrices_as_stored() -> None:
    vector = TensorEntry("norm", "file", 0, 128, WeightFormat.BF16, (64,))
    matrix = TensorEntry("router", "file", 0, 1024, WeightFormat.BF16, (8, 64))

    assert dense_tensor_bytes(vector) == 256
    assert dense_tensor_bytes(matrix) == 1024
