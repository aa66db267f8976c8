"""The stack of layers that all supported families have in common."""

import dataclasses
from collections.abc import Sequence

import torch

from runtime.kernels.base import Kernels
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.models.attention import Attention
from runtime.models.base import AfterLayer, DenseWeights
from runtime.models.moe import DenseBlock, MoeBlock
from runtime.spec.model import ModelSpec

EMBEDDING = "model.embed_tokens.weight"
"""The name of the embedding in all families."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class DecoderLayer:
    """One layer: attention and a feed-forward block, each behind a norm, added to the stream."""

    attention_norm: torch.Tensor
    attention: Attention
    feed_forward_norm: torch.Tensor
    feed_forward: DenseBlock | MoeBlock


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class DecoderEnds:
    """What comes before the first layer and after the last."""

    embedding: Matrix
    norm: torch.Tensor
    output: Matrix


def decoder_ends(spec: ModelSpec, weights: DenseWeights) -> DecoderEnds:
    """Return the ends under the names that all families use; tied models share one matrix."""
    embedding = weights.matrix(EMBEDDING)
    output = embedding if spec.is_tied else weights.matrix("lm_head.weight")
    return DecoderEnds(embedding, weights.vector("model.norm.weight"), output)


class Decoder:
    """A whole model: token ids at known positions in, logits out.

    It holds references to weights and none of its own state; keys and values live in the pages
    that are handed in.

    Threads: used by the engine thread.
    """

    def __init__(
        self, kernels: Kernels, eps: float, ends: DecoderEnds, layers: Sequence[DecoderLayer]
    ) -> None:
        self._kernels = kernels
        self._eps = eps
        self._ends = ends
        self._layers = tuple(layers)

    def forward(
        self,
        token_ids: Sequence[int],
        start_position: int,
        kv: Sequence[KvPages],
        after_layer: AfterLayer | None = None,
    ) -> torch.Tensor:
        """Return the hidden rows ``[n, hidden]`` of a chunk and write its keys and values.

        ``kv`` holds one set of pages per layer, filled up to ``start_position`` and with room for
        the chunk. If ``after_layer`` raises, the pages before ``start_position`` are still valid.
        """
        kernels, eps = self._kernels, self._eps
        ids = torch.tensor(token_ids, dtype=torch.int64)
        x = kernels.embed(self._ends.embedding, ids)
        for index, layer in enumerate(self._layers):
            normed = kernels.rms_norm(x, layer.attention_norm, eps)
            x += layer.attention(normed, start_position, kv[index])
            x += layer.feed_forward(kernels.rms_norm(x, layer.feed_forward_norm, eps))
            if after_layer is not None:
                after_layer(index)
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits ``[n, vocabulary]`` of hidden rows."""
        normed = self._kernels.rms_norm(hidden, self._ends.norm, self._eps)
        return self._kernels.linear(normed, self._ends.output)
