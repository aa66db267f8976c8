"""A recorded routing written into embeddings and routers, so that a model repeats it.

Each token of the sequence has an embedding at right angles to those of all others. A router's row
is the sum of the embeddings of those tokens that chose its expert when the trace was recorded, the
more of each the better its rank was. Sublayers add little to the stream, so that every router sees
the token's own embedding and gives it the experts of the recording. The head holds the embedding of
each token for the one after it, so that the likeliest tokens are the sequence again.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from benchmarks.calibrated.likeness import typical_part
from benchmarks.calibrated.numbers import Floats, Levels, cut_to_bf16, nearest_levels
from runtime.simulate.trace import Trace

CHOSEN, PER_RANK = 4.0, 0.25
"""What a router says of the worst chosen expert, others having 0, and of each rank above it."""
HEAD_SHARE = 2.0**-6
"""Scales of the head to those of the embedding."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Routing:
    """What a calibrated model does; token ``i`` of its vocabulary is token ``i`` of the trace."""

    trace: Trace
    """As many layers as the model has of experts, as many tokens as the sequence."""
    embedding: Levels
    """[tokens, hidden], of the tokens of the sequence."""

    @property
    def num_tokens(self) -> int:
        """Tokens of the sequence."""
        return self.trace.num_tokens

    def router(self, index: int) -> Floats:
        """Return the router ``[experts, hidden]`` of a layer with experts, in numbers of bf16."""
        ids = self.trace.ids[:, index].astype(np.int64)
        num_tokens, top_k = ids.shape
        wanted = np.zeros((num_tokens, self.trace.num_experts), np.float32)
        ranks = CHOSEN + PER_RANK * np.arange(top_k - 1, -1, -1, dtype=np.float32)
        np.put_along_axis(wanted, ids, np.broadcast_to(ranks, ids.shape), axis=1)
        values = self.embedding.values()
        return cut_to_bf16(wanted.T @ values / np.float32(values.shape[1]))

    def embedding_rows(self, first: int, last: int) -> Levels:
        """Return rows of the embedding; tokens behind the sequence are as those in it, again."""
        return self._rows(np.arange(first, last))

    def head_rows(self, first: int, last: int) -> Levels:
        """Return rows of the head: each token follows the one before it, the first the last."""
        tokens = np.arange(first, last)
        rows = self._rows(tokens - 1)
        # Tokens behind the sequence are never the likeliest.
        share = np.where(tokens < self.num_tokens, HEAD_SHARE, HEAD_SHARE / 2)
        return Levels(rows.levels, rows.scales * share[:, None].astype(np.float32))

    def _rows(self, tokens: npt.NDArray[np.int64]) -> Levels:
        found = tokens % self.num_tokens
        return Levels(self.embedding.levels[found], self.embedding.scales[found])


def calibrate(trace: Trace, hidden: int, num_layers: int, num_tokens: int, seed: int) -> Routing:
    """Write so many tokens of a trace into a stream of so many numbers.

    Tokens and layers are taken from all over the trace. Raises ``ValueError`` for more tokens than
    the trace has or than there are right angles.
    """
    if num_tokens > hidden:
        raise ValueError(f"{num_tokens} tokens for a stream of {hidden} numbers: at most as many")
    if not 0 < num_layers <= trace.num_layers:
        raise ValueError(f"{num_layers} layers, and {trace.name} has {trace.num_layers}")
    chosen = [index * trace.num_layers // num_layers for index in range(num_layers)]
    random = np.random.default_rng([seed, 0])
    drawn = random.standard_normal((hidden, num_tokens), dtype=np.float32)
    angles, _ = np.linalg.qr(drawn)
    embedding = np.ascontiguousarray(angles.T * np.float32(hidden**0.5), np.float32)
    part = typical_part(trace, num_tokens).only_layers(chosen)
    return Routing(part, nearest_levels(embedding))
