"""Plain torch forward pass of the dense model with an optional choice of channels per token.

A choice of experts is simulated by a mask on the feed-forward channels, so that one pass serves
measuring, fitting and distilling alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from resources.demo.gguf_source import DenseShape, GgufSource
from resources.demo.rounding import from_bf16_bits, to_bf16_bits

ChannelChoice = Callable[[int, Tensor, Tensor], Tensor]
"""Called with (layer, normalised input, channel values); returns the channel values kept."""


class KvCache:
    """Keys and values of the tokens seen so far, for generation one token at a time."""

    def __init__(self) -> None:
        self._layers: list[tuple[Tensor, Tensor]] = []

    @property
    def num_tokens(self) -> int:
        """Tokens whose keys and values every layer holds."""
        return self._layers[-1][0].shape[2] if self._layers else 0

    def extended(self, index: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return one layer's keys and values after appending those of a new block."""
        if index == len(self._layers):
            self._layers.append((k, v))
        else:
            old_k, old_v = self._layers[index]
            self._layers[index] = (torch.cat((old_k, k), dim=2), torch.cat((old_v, v), dim=2))
        return self._layers[index]


FeedForwardWatch = Callable[[int, Tensor, Tensor, Tensor, Tensor], None]
"""Called with (layer, residual, normalised input, channel values, output)."""


@dataclass(frozen=True)
class LayerWeights:
    """Weights of one dense layer."""

    attention_norm: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    o: Tensor
    feed_forward_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor


@dataclass(frozen=True)
class DenseNetwork:
    """The dense model, its weights rounded as the demo folder stores them."""

    shape: DenseShape
    embedding: Tensor
    last_norm: Tensor
    layers: list[LayerWeights]

    def hidden(
        self,
        ids: Tensor,
        choose: ChannelChoice | None = None,
        cache: KvCache | None = None,
        watch: FeedForwardWatch | None = None,
    ) -> Tensor:
        """Return the last normalised hidden states of a (batch, tokens) block of ids.

        A cache is empty before the first block and receives every block's keys and values.
        """
        start = cache.num_tokens if cache is not None else 0
        rotation = self._rotation(start, ids.shape[1])
        x = F.embedding(ids, self.embedding)
        for index, layer in enumerate(self.layers):
            normalised = self._norm(x, layer.attention_norm)
            x = x + self._attention(index, normalised, rotation, cache)
            normalised = self._norm(x, layer.feed_forward_norm)
            channels = F.silu(F.linear(normalised, layer.gate)) * F.linear(normalised, layer.up)
            if choose is not None:
                channels = choose(index, normalised, channels)
            output = F.linear(channels, layer.down)
            if watch is not None:
                watch(index, x, normalised, channels, output)
            x = x + output
        return self._norm(x, self.last_norm)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return float32 logits for normalised hidden states."""
        return F.linear(hidden, self.embedding).float()

    def _attention(
        self, index: int, x: Tensor, rotation: tuple[Tensor, Tensor], cache: KvCache | None
    ) -> Tensor:
        layer = self.layers[index]
        cosine, sine = rotation
        batch, length, _ = x.shape
        head_size = self.shape.head_size
        q = F.linear(x, layer.q).view(batch, length, -1, head_size).transpose(1, 2)
        k = F.linear(x, layer.k).view(batch, length, -1, head_size).transpose(1, 2)
        v = F.linear(x, layer.v).view(batch, length, -1, head_size).transpose(1, 2)
        q = q * cosine + _half_turned(q) * sine
        k = k * cosine + _half_turned(k) * sine
        if cache is not None:
            k, v = cache.extended(index, k, v)
        # A block behind a filled cache is always a single token: it may see every key.
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1, enable_gqa=True)
        return F.linear(mixed.transpose(1, 2).reshape(batch, length, -1), layer.o)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), self.shape.rms_norm_eps).to(
            x.dtype
        )

    def _rotation(self, start: int, length: int) -> tuple[Tensor, Tensor]:
        half = torch.arange(0, self.shape.head_size, 2, dtype=torch.float32)
        frequency = self.shape.rope_theta ** (-half / self.shape.head_size)
        position = torch.arange(start, start + length, dtype=torch.float32)
        angle = torch.outer(position, frequency)
        angle = torch.cat((angle, angle), dim=-1)
        return angle.cos().to(self.embedding.dtype), angle.sin().to(self.embedding.dtype)


def _half_turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def load_network(path: Path, dtype: torch.dtype = torch.float32) -> DenseNetwork:
    """Return the dense model read from a GGUF file."""
    source = GgufSource(path)
    shape = source.shape()

    def tensor(values: object) -> Tensor:
        rounded = from_bf16_bits(to_bf16_bits(values))  # type: ignore[arg-type]
        return torch.from_numpy(rounded).to(dtype)

    outer = source.outer_tensors()
    layers = []
    for index in range(shape.num_layers):
        t = {name: tensor(values) for name, values in source.layer_tensors(index).items()}
        layers.append(
            LayerWeights(
                attention_norm=t["input_layernorm.weight"],
                q=t["self_attn.q_proj.weight"],
                k=t["self_attn.k_proj.weight"],
                v=t["self_attn.v_proj.weight"],
                o=t["self_attn.o_proj.weight"],
                feed_forward_norm=t["post_attention_layernorm.weight"],
                gate=t["mlp.gate_proj.weight"],
                up=t["mlp.up_proj.weight"],
                down=t["mlp.down_proj.weight"],
            )
        )
    return DenseNetwork(
        shape=shape,
        embedding=tensor(outer["model.embed_tokens.weight"]),
        last_norm=tensor(outer["model.norm.weight"]),
        layers=layers,
    )
