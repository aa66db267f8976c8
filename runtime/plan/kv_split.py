"""Whose keys and values lie on a device: what saves a token more time per byte, they or experts.

A byte of keys and values is read by every token that sees its position, one of an expert only by
tokens that choose it. Layers of one size that see equally much are alike, so that what counts is
how many of each kind leave the device; all such numbers are compared.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from runtime.plan.hits import HitCurve
from runtime.spec.attention import AnyAttention, AttentionSpec
from runtime.spec.footprint import kv_layer_bytes
from runtime.spec.model import ModelSpec

USED_PART = 2
"""One position in this many of a context is in use in the mean: a conversation begins with none."""
LEAST_GAIN = 0.02
"""What leaving must bring, as part of all that the device saves: costs are known no better."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a token saves by what lies on a device instead of in RAM, in seconds."""

    hits: HitCurve
    num_lookups: int
    expert_s: float
    """For each look-up that the device answers."""
    kv_byte_s: float
    """For each byte of keys and values that it reads."""
    kv_layer_s: float
    """For each layer whose keys and values lie there: nobody goes to RAM and back."""

    def experts(self, num_slots: int) -> float:
        """Return what experts there save with so many slots."""
        return self.hits.ratio(num_slots) * self.num_lookups * self.expert_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What keys and values and experts share on a device, and what RAM can take of it."""

    spec: ModelSpec
    context_tokens: int
    room_bytes: int
    """On the device, for both."""
    record_bytes: int
    num_slots: int
    """Of all experts."""
    spare_bytes: int
    """Of RAM, that no expert needs."""


def kv_seconds(worth: Worth, spec: ModelSpec, context_tokens: int) -> tuple[float, ...]:
    """Return what a token saves by the keys and values of each layer, the context half full."""
    depth = context_tokens // USED_PART
    return tuple(
        worth.kv_layer_s + worth.kv_byte_s * 4 * each.kv.num_channels * seen_tokens(each, depth)
        for each in spec.attention
    )


def seen_tokens(attention: AnyAttention, depth: int) -> int:
    """Return how many of so many positions a token reads in a layer."""
    window = attention.window if isinstance(attention, AttentionSpec) else 0
    return min(depth, window) if window else depth


def saved_s(worth: Worth, contest: Contest, in_ram: Sequence[int]) -> float:
    """Return what a token saves if the keys and values of some layers lie in RAM."""
    sizes = kv_layer_bytes(contest.spec, contest.context_tokens)
    seconds = kv_seconds(worth, contest.spec, contest.context_tokens)
    there = [layer for layer in range(len(sizes)) if layer not in set(in_ram)]
    return sum(seconds[layer] for layer in there) + worth.experts(
        _slots(contest, sum(sizes[layer] for layer in there))
    )


def layers_in_ram(worth: Worth, contest: Contest) -> tuple[int, ...]:
    """Return the layers whose keys and values lie in RAM; none where that brings too little.

    Where the device has no room for all of them, some leave whatever that brings; none do where
    RAM has no room for these either.
    """
    sizes = kv_layer_bytes(contest.spec, contest.context_tokens)
    seconds = kv_seconds(worth, contest.spec, contest.context_tokens)
    has_room = sum(sizes) <= contest.room_bytes
    if has_room and _slots(contest, sum(sizes)) >= contest.num_slots:
        return ()
    kinds: dict[tuple[int, float], list[int]] = {}
    for layer, kind in enumerate(zip(sizes, seconds, strict=True)):
        kinds.setdefault(kind, []).append(layer)
    whole_bytes, whole_s = sum(sizes), sum(seconds)
    kept_s = whole_s + worth.experts(_slots(contest, whole_bytes))
    best_s, best = kept_s * (1 + LEAST_GAIN) if has_room else -1.0, None
    for numbers in itertools.product(*(range(len(layers) + 1) for layers in kinds.values())):
        moved = list(zip(kinds, numbers, strict=True))
        moved_bytes = sum(size * number for (size, _), number in moved)
        if moved_bytes > contest.spare_bytes or whole_bytes - moved_bytes > contest.room_bytes:
            continue
        left_s = whole_s - sum(each_s * number for (_, each_s), number in moved)
        found_s = left_s + worth.experts(_slots(contest, whole_bytes - moved_bytes))
        if found_s > best_s:
            best_s, best = found_s, numbers
    if best is None:
        return ()
    # The last of a kind leave first, so that the sets of neighbouring budgets hold each other.
    chosen = [layers[len(layers) - n :] for layers, n in zip(kinds.values(), best, strict=True)]
    return tuple(sorted(itertools.chain.from_iterable(chosen)))


def _slots(contest: Contest, kv_bytes: int) -> int:
    """Return the expert slots that keys and values of so many bytes leave on the device."""
    room_bytes = contest.room_bytes - kv_bytes
    if not contest.record_bytes:
        return 0
    return max(0, min(contest.num_slots, room_bytes // contest.record_bytes))
