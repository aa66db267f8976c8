"""Arithmetic of one memory, RAM or VRAM: what it needs at least, at most, how it is divided."""

import bisect
import dataclasses

from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.plan import MemoryPart
from runtime.spec.footprint import (
    KV_PAGE_TOKENS,
    PREFILL_CHUNK_TOKENS,
    host_work_bytes,
    kv_cache_bytes,
    kv_layer_bytes,
    work_bytes,
)
from runtime.spec.model import ModelSpec
from runtime.spec.ram_slots import Records, even_experts_bytes, even_slots, ram_slots_within

GIB = 1024**3
BASE_BYTES = 250 * 1000 * 1000
"""Resident size of the runtime with its engine imported, before the first arena."""
DEFAULT_CONTEXT_TOKENS = 8192
MIN_CONTEXT_TOKENS = 512
MIN_SLOTS_PER_LAYER = 2
"""RAM slots of a layer below which a budget is of no use: those of a copy to a device at a time."""
CONTEXT_SHARE = 4
"""One byte in this many above the minimum goes to the context, the others to experts."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one memory has to hold of one model in one format, part by part.

    The sums are those of ``runtime.spec.footprint``, which the engine takes from its ledgers.
    """

    spec: ModelSpec
    dense_bytes: int
    """0 where the dense part lies elsewhere."""
    records: Records
    """Of all experts."""
    wanted_context_tokens: int
    min_context_tokens: int
    """Equal to the wanted one where a person asked for it."""
    num_min_slots: int
    """Slots without which a token cannot be computed."""
    has_context: bool = True
    """Whether KV pages and their work buffers lie here; else only what computing experts takes."""
    has_policy: bool = True
    """Whether experts are read into this memory and a policy chooses who stays: in RAM."""

    @property
    def num_all_slots(self) -> int:
        """Slots with which every expert stays."""
        return len(self.spec.moe_layers) * self.spec.num_experts

    @property
    def record_bytes(self) -> int:
        """What an expert takes, the largest where they differ."""
        return self.records.largest_bytes

    @property
    def mean_record_bytes(self) -> int:
        """What an expert takes in the mean."""
        return self.records.total_bytes // max(1, self.num_all_slots)

    @property
    def min_bytes(self) -> int:
        """Smallest budget with which this memory is of use."""
        context_bytes = self.context_bytes(self.min_context_tokens)
        return self.dense_bytes + context_bytes + self.min_experts_bytes

    @property
    def all_bytes(self) -> int:
        """Smallest budget with the wanted context and every expert."""
        context_bytes = self.context_bytes(self.wanted_context_tokens)
        return self.dense_bytes + context_bytes + self.experts_bytes(self.num_all_slots)

    @property
    def min_experts_bytes(self) -> int:
        """The least that experts take: few slots of each layer, or all of exact sizes."""
        return min(map(self.experts_bytes, (self.num_min_slots, self.num_all_slots)))

    def experts_bytes(self, num_slots: int) -> int:
        """Return what experts take with so many slots, each layer having as many.

        In RAM slots have the size of their layer, on a device that of the largest record.
        """
        if not self.has_policy:
            return num_slots * self.record_bytes
        return even_experts_bytes(self.spec, self.records, num_slots)

    def slots_within(self, num_bytes: int) -> int:
        """Return the most slots, each layer having as many, that take no more than this."""
        if not self.record_bytes:
            return 0
        if not self.has_policy:
            return num_bytes // self.record_bytes
        return ram_slots_within(self.spec, self.records, num_bytes)

    def context_bytes(self, context_tokens: int) -> int:
        """Return what a context takes: KV pages and the work buffers that go with it."""
        return self.kv_bytes(context_tokens) + self.work_bytes(context_tokens)

    def kv_bytes(self, context_tokens: int) -> int:
        """Return what the KV pages of a context take."""
        return kv_cache_bytes(self.spec, context_tokens) if self.has_context else 0

    def work_bytes(self, context_tokens: int) -> int:
        """Return what the work buffers take: a prompt is computed in chunks of full size."""
        if not self.has_context:
            return host_work_bytes(self.spec, PREFILL_CHUNK_TOKENS)
        chunk_tokens = min(PREFILL_CHUNK_TOKENS, context_tokens)
        return work_bytes(self.spec, context_tokens, chunk_tokens)


@dataclasses.dataclass(frozen=True, slots=True)
class Division:
    """How a budget is divided: slots of each MoE layer, and the context."""

    slots_per_layer: tuple[int, ...]
    context_tokens: int
    ram_kv_layers: tuple[int, ...] = ()
    """Layers whose keys and values lie in RAM although the context lies on a device; both memories
    name them."""


def smallest(needs: Needs) -> Division:
    """Return the division of the smallest budget."""
    num_slots = needs.slots_within(needs.min_experts_bytes)
    slots = even_slots(num_slots, len(needs.spec.moe_layers))
    return Division(tuple(slots), needs.min_context_tokens)


def parts_of(needs: Needs, division: Division) -> dict[MemoryPart, int]:
    """Return what each part takes under a division."""
    return {
        MemoryPart.DENSE: needs.dense_bytes,
        MemoryPart.EXPERTS: needs.experts_bytes(sum(division.slots_per_layer)),
        MemoryPart.KV_CACHE: _kv_bytes(needs, division),
        MemoryPart.WORK: needs.work_bytes(division.context_tokens),
    }


def moved_kv_bytes(needs: Needs, division: Division) -> int:
    """Return what the keys and values take that lie in RAM beside a device."""
    sizes = kv_layer_bytes(needs.spec, division.context_tokens)
    return sum(sizes[layer] for layer in division.ram_kv_layers)


def _kv_bytes(needs: Needs, division: Division) -> int:
    """Return what the KV pages that lie in this memory take."""
    moved_bytes = moved_kv_bytes(needs, division)
    if not needs.has_context:
        return moved_bytes
    return needs.kv_bytes(division.context_tokens) - moved_bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """What a plan may take of a memory without a person's budget, and where that comes from."""

    free_bytes: int
    """Free now; of RAM, without what the runtime itself takes."""
    reserve_bytes: int
    """Left to the system and other programs."""
    limit_bytes: int | None
    """Limit of the control group, if one is below the memory of the PC."""

    def budget(self, given_bytes: int | None, needs: Needs) -> int:
        """Return the budget in force: the person's within what is free, else the planner's."""
        if given_bytes is not None:
            return max(0, min(given_bytes, self.largest_bytes))
        return min(self.default_bytes, needs.all_bytes)

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
    return Room(
        free_bytes=max(0, min(int(machine.ram_available.value), limit) - BASE_BYTES),
        reserve_bytes=reserve_of(total, limit),
        limit_bytes=limit if limit < total else None,
    )


def reserve_of(total_bytes: int, limit_bytes: int) -> int:
    """Return the RAM that is left to the system; ``limit_bytes`` is the total where none is set.

    A control group is ours alone, so what has to stay free of it is small.
    """
    if limit_bytes < total_bytes:
        return limit_bytes // 20
    return min(max(GIB, total_bytes // 10), total_bytes // 4)


def vram_room_of(device: DeviceReport) -> Room:
    """Return the memory of a device that can be planned with.

    A simulated card shares its memory with no other program, so nothing is left free there.
    """
    shared = max(GIB // 2, device.total_bytes // 10)
    return Room(
        free_bytes=device.free_bytes,
        reserve_bytes=0 if device.is_simulated else shared,
        limit_bytes=None,
    )


def divide(needs: Needs, budget_bytes: int) -> Division:
    """Divide a budget that is at least the minimum.

    A larger budget never gives fewer slots nor a shorter context: both get a fixed share of what
    lies above the minimum, each before rounding, until one has all it can use.
    """
    surplus = budget_bytes - needs.min_bytes
    all_context = needs.context_bytes(needs.wanted_context_tokens)
    all_experts = needs.experts_bytes(needs.num_all_slots)
    context = min(
        all_context,
        needs.context_bytes(needs.min_context_tokens) + surplus // CONTEXT_SHARE,
    )
    experts = min(all_experts, budget_bytes - needs.dense_bytes - context)
    context = min(all_context, budget_bytes - needs.dense_bytes - experts)
    return Division(
        slots_per_layer=tuple(even_slots(needs.slots_within(experts), len(needs.spec.moe_layers))),
        context_tokens=_context_of(needs, context),
    )


def _context_of(needs: Needs, context_bytes: int) -> int:
    """Return the longest context of whole KV pages, or the wanted one, that takes so much."""
    if needs.context_bytes(needs.wanted_context_tokens) <= context_bytes:
        return needs.wanted_context_tokens
    pages = range(needs.min_context_tokens // KV_PAGE_TOKENS, needs.wanted_context_tokens)
    num_fitting = bisect.bisect_right(
        pages, context_bytes, key=lambda page: needs.context_bytes(page * KV_PAGE_TOKENS)
    )
    return max(needs.min_context_tokens, (pages.start + num_fitting - 1) * KV_PAGE_TOKENS)
