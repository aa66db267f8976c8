"""What the parts of a loaded model take in RAM: the planner's sums and the engine's arenas agree.

Pure arithmetic. Every function gives exactly what the engine takes from its ledger for that part.
"""

import bisect
from collections.abc import Iterable, Sequence

from runtime.protocol.values import WeightFormat
from runtime.spec.attention import KvShape
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import PAGE_BYTES, PART_ALIGN_BYTES, ExpertLayout, TensorEntry

KV_PAGE_TOKENS = 64
"""Positions whose keys and values one KV page holds."""
PREFILL_CHUNK_TOKENS = 256
"""Most prompt tokens that go through the layers together, as plans reckon with them.

Those of a model that is larger than its RAM may borrow more room (``generate.long_prompts``).
"""

STAGING_BYTES = 8 * 1024 * 1024
"""RAM through which the dense part travels to a device, piece by piece."""

MIN_STAGING_SLOTS = 4
"""Reads of experts that a drive can be given at once at least."""

_F32_BYTES = 4


def dense_tensor_bytes(entry: TensorEntry) -> int:
    """Return what a dense tensor takes in RAM: matrices as stored, vectors as f32."""
    num_bytes = entry.num_bytes
    if len(entry.shape) == 1 and entry.format in {WeightFormat.F16, WeightFormat.BF16}:
        num_bytes = entry.shape[0] * _F32_BYTES
    return -(-num_bytes // PART_ALIGN_BYTES) * PART_ALIGN_BYTES


def dense_bytes(entries: Iterable[TensorEntry]) -> int:
    """Return what all dense tensors take together."""
    return _whole_pages(sum(map(dense_tensor_bytes, entries)))


def experts_bytes(layout: ExpertLayout, slots_per_layer: Sequence[int]) -> int:
    """Return what the expert slots of all layers take."""
    return layout.record_bytes * sum(slots_per_layer)


def staging_slots(spec: ModelSpec) -> int:
    """Return the RAM slots of each size from which experts are computed that do not stay.

    A token's experts can be read at once, and always as many as keep a drive busy.
    """
    return min(spec.num_experts, max(spec.top_k, MIN_STAGING_SLOTS))


def policy_bytes(num_layers: int, num_experts: int) -> int:
    """Return what the default policy keeps: for each layer, which expert follows which."""
    return num_layers * _whole_pages(_F32_BYTES * num_experts * (num_experts + 8))


def kv_page_bytes(shape: KvShape) -> int:
    """Return what one KV page of a layer takes: f32 keys, then values, or both in one."""
    return _whole_pages(KV_PAGE_TOKENS * shape.num_channels * _F32_BYTES)


def kv_cache_bytes(spec: ModelSpec, context_tokens: int) -> int:
    """Return what the KV pages of all layers take for a context."""
    return sum(kv_layer_bytes(spec, context_tokens))


def kv_layer_bytes(spec: ModelSpec, context_tokens: int) -> tuple[int, ...]:
    """Return what the KV pages of each layer take for a context."""
    num_pages = -(-context_tokens // KV_PAGE_TOKENS)
    return tuple(num_pages * kv_page_bytes(attention.kv) for attention in spec.attention)


def work_bytes(spec: ModelSpec, context_tokens: int, chunk_tokens: int) -> int:
    """Return what computing a chunk takes: activations, logits, sampling and rotary tables."""
    heads = max(attention.num_work_channels for attention in spec.attention)
    per_token = (
        6 * spec.hidden_size
        + 2 * heads
        + 3 * max(spec.dense_width, spec.shared_width)
        + spec.top_k * (2 * spec.expert_width + spec.hidden_size)
        + 3 * spec.num_experts
    )
    logits = 10 * spec.vocabulary_size
    tables = context_tokens * sum(rope.num_channels for rope in spec.ropes)
    return _whole_pages(_F32_BYTES * (chunk_tokens * per_token + logits + tables))


def host_work_bytes(spec: ModelSpec, chunk_tokens: int) -> int:
    """Return what RAM holds beside its experts where a device has the dense part.

    These are the staging buffer, and what the processor needs to compute the experts of a chunk
    that the device does not hold: hidden states in and out, chosen experts, their activations.
    """
    per_token = 2 * spec.hidden_size + spec.top_k * (2 * spec.expert_width + spec.hidden_size + 3)
    return STAGING_BYTES + _whole_pages(_F32_BYTES * chunk_tokens * per_token)


def prefill_chunk_tokens(
    spec: ModelSpec,
    context_tokens: int,
    room_bytes: int,
    most_tokens: int = PREFILL_CHUNK_TOKENS,
) -> int:
    """Return how many prompt tokens to compute together so that the work fits into the room.

    At least 1, even if that does not fit.
    """
    candidates = range(1, min(most_tokens, context_tokens) + 1)
    num_fitting = bisect.bisect_right(
        candidates, room_bytes, key=lambda tokens: work_bytes(spec, context_tokens, tokens)
    )
    return max(1, num_fitting)


def _whole_pages(num_bytes: int) -> int:
    """Return a size rounded up to whole pages."""
    return -(-num_bytes // PAGE_BYTES) * PAGE_BYTES
