"""RAM arithmetic of a plan: what is needed at least, at most, and how a budget is divided."""

import dataclasses
from collections.abc import Sequence

from runtime.protocol.machine import MachineReport
from runtime.spec.model import ModelSpec

GIB = 1024**3
BASE_BYTES = 250 * 1000 * 1000
"""Resident size of the runtime with its engine imported, before the first arena."""
CHUNK_TOKENS = 128
"""Prompt tokens computed together; the work buffers are sized for it."""
ATTENTION_KEYS = 2048
"""Keys whose scores are held at once while a chunk is computed."""
DEFAULT_CONTEXT_TOKENS = 8192
MIN_CONTEXT_TOKENS = 512
CONTEXT_STEP_TOKENS = 64
"""A context that the planner shortens is a multiple of this."""
KV_SHARE = 4
"""One byte in this many above the minimum goes to the context, the others to experts."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one format of one model takes, in bytes, and its counts."""

    dense_bytes: int
    work_bytes: int
    record_bytes: int
    kv_bytes_per_token: int
    num_moe_layers: int
    num_experts: int
    top_k: int
    wanted_context_tokens: int
    min_context_tokens: int
    """Equal to the wanted one where a person asked for it."""

    @property
    def fixed_bytes(self) -> int:
        """What does not depend on the budget."""
        return self.dense_bytes + self.work_bytes

    @property
    def num_all_slots(self) -> int:
        """Slots with which every expert stays in RAM."""
        return self.num_moe_layers * self.num_experts

    @property
    def num_min_slots(self) -> int:
        """Slots without which a token cannot be computed."""
        return self.num_moe_layers * self.top_k

    @property
    def min_ram_bytes(self) -> int:
        """Smallest budget that can be loaded."""
        kv_bytes = self.min_context_tokens * self.kv_bytes_per_token
        return self.fixed_bytes + kv_bytes + self.num_min_slots * self.record_bytes

    @property
    def all_ram_bytes(self) -> int:
        """Smallest budget with the wanted context and every expert in RAM."""
        kv_bytes = self.wanted_context_tokens * self.kv_bytes_per_token
        return self.fixed_bytes + kv_bytes + self.num_all_slots * self.record_bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Division:
    """How a budget is divided: slots of each MoE layer, and the context."""

    slots_per_layer: tuple[int, ...]
    context_tokens: int


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """RAM that a plan may take without a person's budget, and where that figure comes from."""

    free_bytes: int
    """Free now, without what the runtime itself takes."""
    reserve_bytes: int
    """Left to the system and other programs."""
    limit_bytes: int | None
    """Limit of the control group, if one is below the memory of the PC."""

    @property
    def default_bytes(self) -> int:
        """What the planner takes by itself."""
        return max(0, self.free_bytes - self.reserve_bytes)

    @property
    def largest_bytes(self) -> int:
        """What a person's budget may reach: more than this would take the PC down."""
        return max(0, self.free_bytes - self.reserve_bytes // 4)


def room_of(machine: MachineReport) -> Room:
    """Return the RAM that can be planned with on a machine."""
    total = int(machine.ram_total.value)
    limit = int(machine.ram_limit.value) if machine.ram_limit is not None else total
    # A control group is ours alone, so what has to stay free of it is small.
    reserve = limit // 20 if limit < total else min(max(GIB, total // 10), total // 4)
    return Room(
        free_bytes=max(0, min(int(machine.ram_available.value), limit) - BASE_BYTES),
        reserve_bytes=reserve,
        limit_bytes=limit if limit < total else None,
    )


def work_bytes(spec: ModelSpec, staging_bytes: int, scratch_bytes: int) -> int:
    """Return what the work buffers take.

    For each token of a chunk, in fp32: six hidden states, query, key and value, and three rows of
    the feed-forward width; then attention scores of all heads for one chunk against
    ``ATTENTION_KEYS`` keys, two rows of logits, room to stage one expert whose file is not aligned,
    and scratch of the kernels.
    """
    attention_width = (spec.num_heads + 2 * spec.num_kv_heads) * spec.head_dim
    feed_forward_width = max(spec.top_k * spec.expert_width + spec.shared_width, spec.dense_width)
    row = 6 * spec.hidden_size + attention_width + 3 * feed_forward_width
    scores = spec.num_heads * CHUNK_TOKENS * min(ATTENTION_KEYS, spec.max_context_tokens)
    numbers = CHUNK_TOKENS * row + scores + 2 * spec.vocabulary_size
    return 4 * numbers + staging_bytes + scratch_bytes


def divide(needs: Needs, budget_bytes: int) -> Division:
    """Divide a budget that is at least the minimum.

    A larger budget never gives fewer slots nor a shorter context: both get a fixed share of what
    lies above the minimum, each before rounding, until one has all it can use.
    """
    surplus = budget_bytes - needs.min_ram_bytes
    min_kv = needs.min_context_tokens * needs.kv_bytes_per_token
    all_kv = needs.wanted_context_tokens * needs.kv_bytes_per_token
    kv = min(all_kv, min_kv + surplus // KV_SHARE)
    all_experts = needs.num_all_slots * needs.record_bytes
    experts = min(all_experts, budget_bytes - needs.fixed_bytes - kv)
    kv = min(all_kv, budget_bytes - needs.fixed_bytes - experts)
    num_slots = experts // needs.record_bytes if needs.record_bytes else 0
    return Division(
        slots_per_layer=tuple(even_slots(num_slots, needs.num_moe_layers)),
        context_tokens=_context_of(needs, kv),
    )


def even_slots(num_slots: int, num_layers: int) -> Sequence[int]:
    """Return slots per layer: evenly, what is left over to the first layers, which miss most."""
    if not num_layers:
        return []
    each, left = divmod(num_slots, num_layers)
    return [each + (index < left) for index in range(num_layers)]


def _context_of(needs: Needs, kv_bytes: int) -> int:
    if not needs.kv_bytes_per_token:
        return needs.wanted_context_tokens
    tokens = kv_bytes // needs.kv_bytes_per_token
    if tokens >= needs.wanted_context_tokens:
        return needs.wanted_context_tokens
    rounded = tokens - tokens % CONTEXT_STEP_TOKENS
    return max(rounded, needs.min_context_tokens)
