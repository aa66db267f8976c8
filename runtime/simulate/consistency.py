"""Counting how alike the experts of tokens in a row are.

Definitions of "Not All Models Suit Expert Offloading" (arXiv:2505.16056): segment routing best
performance and segment cache best hit rate, both of segments of some tokens in a row.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from runtime.simulate.trace import Trace
from runtime.spec.past import CACHE_RATIOS, SEGMENT_TOKENS, RoutingCounts

Ids = npt.NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max


def count_routing(ids: Ids, num_experts: int) -> RoutingCounts | None:
    """Count one sequence ``[tokens, layers, top_k]``; None if it is shorter than a segment."""
    if len(ids) < SEGMENT_TOKENS:
        return None
    num_layers, top_k = ids.shape[1:]
    uses = segment_uses(ids, num_experts, SEGMENT_TOKENS)
    slots = [ratio * top_k for ratio in CACHE_RATIOS]
    hits = segment_hits(ids, num_experts, slots, SEGMENT_TOKENS)
    return RoutingCounts(tuple(uses), tuple(hits), len(ids) * num_layers * top_k, len(ids))


def count_trace(trace: Trace) -> RoutingCounts | None:
    """Count all sequences of a trace, each by itself; None if all are too short."""
    ends = np.cumsum(trace.sequence_tokens)[:-1]
    found = (
        count_routing(ids.astype(np.int64), trace.num_experts) for ids in np.split(trace.ids, ends)
    )
    whole: RoutingCounts | None = None
    for counts in found:
        if counts is not None:
            whole = counts if whole is None else whole.plus(counts, whole.num_tokens)
    return whole


def segment_uses(ids: Ids, num_experts: int, segment_tokens: int) -> list[int]:
    """Return how many experts of all segments and layers were chosen by 0, 1, ... of the tokens.

    Segments begin with every token that has enough behind it.
    """
    num_tokens, num_layers, _ = ids.shape
    chosen = np.zeros((num_tokens + 1, num_layers, num_experts), np.int16)
    np.put_along_axis(chosen[1:], ids, 1, axis=2)
    before = np.cumsum(chosen, axis=0, dtype=np.int16)
    counts = before[segment_tokens:] - before[:-segment_tokens]
    found: list[int] = np.bincount(counts.ravel(), minlength=segment_tokens + 1).tolist()
    return found


def segment_hits(
    ids: Ids, num_experts: int, slots: Sequence[int], segment_tokens: int
) -> list[int]:
    """Return the hits of caches of so many slots a layer, one number for each.

    A cache begins empty, and an expert that comes into an empty slot counts as a hit. Each expert
    of a token enters; who is needed least by the tokens of the segment that begins with this one
    leaves, of equals the one that was needed longest ago.
    """
    num_tokens, num_layers, top_k = ids.shape
    rows = np.arange(num_layers)
    sizes = np.array(slots)[:, None]
    future = np.zeros((num_layers, num_experts), np.int64)
    last = np.full((num_layers, num_experts), -1, np.int64)
    lies = np.zeros((len(slots), num_layers, num_experts), bool)
    hits = np.zeros(len(slots), np.int64)
    # One number to compare by: needs to come, then how recently needed.
    scale = num_tokens * top_k + 1
    for token in ids[: segment_tokens - 1]:
        future[rows[:, None], token] += scale
    clock = 0
    for number, token in enumerate(ids):
        if number + segment_tokens <= num_tokens:
            future[rows[:, None], ids[number + segment_tokens - 1]] += scale
        hits += lies[:, rows[:, None], token].sum(axis=(1, 2))
        is_new = last[rows[:, None], token] < 0
        # Empty slots take the first of those that were never seen.
        room = np.maximum(sizes - (last >= 0).sum(axis=1), 0)
        hits += np.minimum(room, is_new.sum(axis=1)).sum(axis=1)
        for experts in token.T:
            clock += 1
            future[rows, experts] -= scale
            last[rows, experts] = clock
            lies[:, rows, experts] = True
            worth = np.where(lies, future + last, _NEVER)
            worth[:, rows, experts] = _NEVER
            leaving = worth.argmin(axis=2)
            is_over = lies.sum(axis=2) > sizes
            cache, layer = np.nonzero(is_over)
            lies[cache, layer, leaving[cache, layer]] = False
    found: list[int] = hits.tolist()
    return found
