"""How alike two traces are, and the part of a trace that is most like the whole."""

import dataclasses
import itertools

import numpy as np

from runtime.policy.catalogue import POLICIES
from runtime.simulate.hygiene import reuse_share, uses
from runtime.simulate.replay import Entry, replay
from runtime.simulate.synthetic import LAGS
from runtime.simulate.trace import Trace

SHARES = (0.125, 0.25, 0.5)
"""Of the experts of a layer: the most used ones that are counted, and slots."""
MAX_POINTS = 3.0
"""More than so many points apart is not alike."""
_WHOLE_TOKENS = 8000
_NUM_PIECES = 8
_NUM_PHASES = 8
_NUM_LAYERS = 8


def marks(trace: Trace) -> dict[str, float]:
    """Return reuse over distances, the share of needs of the most used experts, and LRU's hits."""
    found = {f"reuse after {lag}": reuse_share(trace, lag) for lag in LAGS}
    counts = np.sort(uses(trace), axis=1)[:, ::-1]
    for share in SHARES:
        number = round(share * trace.num_experts)
        found[f"needs of {share:.1%} of experts"] = float(counts[:, :number].sum() / counts.sum())
    for share in SHARES:
        slots = [round(share * trace.num_experts)] * trace.num_layers
        hits = replay(trace, POLICIES["lru"], slots, Entry.OPTIONAL).hit_ratio
        found[f"LRU with {share:.1%} of experts"] = hits
    return found


def points_apart(one: Trace, other: Trace) -> dict[str, float]:
    """Return by how many points each mark of one trace is above that of another."""
    wanted = marks(other)
    return {name: 100 * (value - wanted[name]) for name, value in marks(one).items()}


def beginning(trace: Trace) -> Trace:
    """Return as much of a trace as it is judged by."""
    return trace.part(_WHOLE_TOKENS)


def typical_part(trace: Trace, num_tokens: int) -> Trace:
    """Return so many tokens of a trace, in pieces from all over it, as like the whole as possible.

    Topics stay for a piece, an eighth of all. Of some ways to lay the pieces the best is taken.
    Raises ``ValueError`` if the trace has fewer tokens.
    """
    if num_tokens > trace.num_tokens:
        raise ValueError(f"{num_tokens} tokens, and {trace.name} has {trace.num_tokens}")
    whole = beginning(trace)
    layers = range(0, trace.num_layers, max(1, trace.num_layers // _NUM_LAYERS))
    wanted = np.array(list(marks(whole.only_layers(layers)).values()))
    best, least = whole, np.inf
    for phase in range(_NUM_PHASES):
        part = _laid(whole, num_tokens, phase / _NUM_PHASES)
        found = np.array(list(marks(part.only_layers(layers)).values()))
        distance = float(np.abs(found - wanted).max())
        if distance < least:
            best, least = part, distance
    return best


def _laid(trace: Trace, num_tokens: int, phase: float) -> Trace:
    """Return pieces of equal distances; ``phase`` is where the first begins, in distances."""
    ends = [number * num_tokens // _NUM_PIECES for number in range(_NUM_PIECES + 1)]
    places = []
    for number, (begin, end) in enumerate(itertools.pairwise(ends)):
        room = trace.num_tokens - (end - begin)
        first = min(int((number + phase) * trace.num_tokens / _NUM_PIECES), room)
        places.append(np.arange(first, first + end - begin))
    chosen = np.concatenate(places)
    return dataclasses.replace(
        trace, sequence_tokens=(num_tokens,), ids=trace.ids[chosen], scores=None, hints=None
    )
