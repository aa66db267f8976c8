"""Small traces with the features of real routing, made from a seed."""

import numpy as np

from runtime.simulate.trace import Trace, TraceOrigin

ORIGIN = TraceOrigin("made up", "text", "this test", "Apache-2.0")


def sticky_trace(
    num_tokens: int = 300, num_layers: int = 3, num_experts: int = 16, top_k: int = 2, seed: int = 1
) -> Trace:
    """Return a trace with favourites in each layer and reuse from token to token."""
    draw = np.random.default_rng(seed)
    ids = np.empty((num_tokens, num_layers, top_k), np.uint16)
    scores = np.empty((num_tokens, num_layers, num_experts))
    level = draw.normal(0, 1.0, (num_layers, num_experts))
    state = np.zeros((num_layers, num_experts))
    for token in range(num_tokens):
        state = 0.8 * state + draw.normal(0, 0.6, state.shape)
        scores[token] = level + state
        ids[token] = np.argsort(-scores[token], axis=1)[:, :top_k]
    half = num_tokens // 2
    return Trace(
        "sticky", ORIGIN, num_experts, tuple(range(num_layers)), (half, num_tokens - half), ids
    )


def trace_of(rows: list[list[list[int]]], num_experts: int) -> Trace:
    """Return a trace of ``rows[token][layer]``."""
    ids = np.array(rows, np.uint16)
    return Trace("rows", ORIGIN, num_experts, tuple(range(ids.shape[1])), (len(rows),), ids)
