"""The stack of layers that all supported families have in common."""

import dataclasses
from collections.abc import Sequence

import torch

from runtime.kernels.base import Kernels
from runtime.kernels.composition import in_even_rows
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.models.base import (
    AfterLayer,
    AttentionBlock,
    FeedForward,
    FixedRunner,
    Layer,
    Parts,
)
from runtime.models.norms import Norm, norm
from runtime.spec.blocks import Scales

_EMBEDDING = "embed_tokens.weight"


def is_embedding(name: str) -> bool:
    """Whether a tensor is the embedding, of which rows are looked up."""
    return name.endswith(_EMBEDDING)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class DecoderLayer:
    """One layer: attention and a feed-forward block, each behind a norm, added to the stream."""

    attention_norm: Norm
    attention: AttentionBlock
    feed_forward_norm: Norm
    feed_forward: FeedForward
    residual_scale: float = 1.0
    index: int = 0
    runner: FixedRunner | None = None

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the stream after this layer, which may be ``x`` itself."""
        done = None
        if self.runner is not None:
            done = self.runner.run(self.index, self.fixed, x, start_position, pages)
        if done is not None:
            x, (hidden, *chosen) = done
            self._add(x, self.feed_forward.rest(hidden, chosen))
            return x
        self._add(x, self.attention(self.attention_norm(x), start_position, pages))
        self._add(x, self.feed_forward(self.feed_forward_norm(x)))
        return x

    def fixed(self, x: torch.Tensor, start_position: int, pages: KvPages) -> Sequence[torch.Tensor]:
        """Compute up to the choice of experts; return the rows they get, and the choice."""
        self._add(x, self.attention(self.attention_norm(x), start_position, pages))
        hidden = self.feed_forward_norm(x)
        return (hidden, *self.feed_forward.fixed(hidden))

    def _add(self, x: torch.Tensor, given: torch.Tensor) -> None:
        if self.residual_scale != 1.0:
            given = given * self.residual_scale
        x += given


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class DecoderEnds:
    """What comes before the first layer and after the last."""

    embedding: Matrix
    norm: Norm
    output: Matrix
    output_bias: torch.Tensor | None
    scales: Scales


def decoder_ends(parts: Parts) -> DecoderEnds:
    """Return the ends under the names that families use; tied models share one matrix."""
    spec, weights = parts.spec, parts.weights
    embedding = weights.matrix(f"model.{_EMBEDDING}")
    output = embedding if spec.is_tied else weights.matrix("lm_head.weight")
    bias = weights.vector("lm_head.bias") if spec.has_output_bias else None
    return DecoderEnds(embedding, norm(parts, "model.norm"), output, bias, spec.scales)


class Decoder:
    """A whole model: token ids at known positions in, logits out.

    It holds references to weights and none of its own state; keys and values live in the pages
    that are handed in.

    Threads: used by the engine thread.
    """

    def __init__(self, kernels: Kernels, ends: DecoderEnds, layers: Sequence[Layer]) -> None:
        self._kernels = kernels
        self._ends = ends
        self._layers = tuple(layers)

    @property
    def layers(self) -> Sequence[Layer]:
        """All layers, the first that a token passes first."""
        return self._layers

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
        ids = torch.tensor(token_ids, dtype=torch.int64)
        x = self._kernels.embed(self._ends.embedding, ids)
        if self._ends.scales.embedding != 1.0:
            x *= self._ends.scales.embedding
        for index, layer in enumerate(self._layers):
            x = layer(x, start_position, kv[index])
            if after_layer is not None:
                after_layer(index)
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits ``[n, vocabulary]`` of hidden rows."""
        ends, scales = self._ends, self._ends.scales
        logits = self._kernels.linear(ends.norm(hidden), ends.output, ends.output_bias)
        if scales.logits != 1.0:
            logits *= scales.logits
        if scales.logits_cap:
            logits = in_even_rows(torch.tanh, logits / scales.logits_cap) * scales.logits_cap
        return logits
