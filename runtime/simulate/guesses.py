"""Guesses of what the next layer needs, for traces that were recorded without any."""

import dataclasses

import numpy as np

from runtime.simulate.trace import MAX_SCORE, ExpertIds, Trace

_PLAIN_USE = 0.1
"""What it counts that an expert is used often at all, beside who used to follow."""


def with_guesses(trace: Trace) -> Trace:
    """Return a trace with ``top_k`` hints for each layer, learnt from earlier tokens alone.

    An expert of the next layer is expected as often as it was needed after those that a token
    chose in this one, each counting by its score where the trace holds scores. Nothing stands
    before the first layer: its hints are what it used most.
    """
    num_layers, num_experts = trace.num_layers, trace.num_experts
    followed = np.zeros((num_layers - 1, num_experts, num_experts), np.float32)
    uses = np.zeros((num_layers, num_experts), np.float32)
    layers = np.arange(num_layers)[:, None]
    hints: ExpertIds = np.empty(trace.ids.shape, np.uint16)
    for token, chosen in enumerate(trace.ids.astype(np.intp)):
        expected = _PLAIN_USE / (token + 1) * uses
        if num_layers > 1:
            shares = _shares(trace, token)[:-1] / np.maximum(uses[layers, chosen][:-1], 1)
            rows = followed[layers[:-1], chosen[:-1]]
            expected[1:] += (shares[:, :, None] * rows).sum(axis=1)
            followed[layers[:-1, :, None], chosen[:-1, :, None], chosen[1:, None, :]] += 1
        order = np.argsort(-expected, axis=1, kind="stable")
        hints[token] = order[:, : trace.top_k]
        uses[layers, chosen] += 1
    return dataclasses.replace(trace, hints=hints)


def _shares(trace: Trace, token: int) -> np.ndarray:
    """Return what each chosen expert of a token counts, [layers, top_k]."""
    if trace.scores is None:
        return np.full(trace.ids.shape[1:], 1 / trace.top_k, np.float32)
    shares: np.ndarray = trace.scores[token].astype(np.float32) / MAX_SCORE
    return shares
