"""What every layer's feed-forward block sees and does on a set of text blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from resources.demo.derive.network import DenseNetwork

_BATCH_ROWS = 4


@dataclass(frozen=True)
class LayerCapture:
    """Per token: normalised input, channel values, gradient at the output, residual scale.

    The gradient is that of a log-probability sampled from the model itself, so that its second
    moments say how much the model's answer feels a change of the output in each direction.
    """

    x: Tensor
    channels: Tensor
    gradient: Tensor
    residual_rms: Tensor


def capture(
    network: DenseNetwork, blocks: Sequence[Sequence[int]], generator: torch.Generator
) -> list[LayerCapture]:
    """Return one capture per layer; all tokens are kept in the network's own type."""
    parts: list[list[tuple[Tensor, ...]]] = [[] for _ in network.layers]
    for begin in range(0, len(blocks), _BATCH_ROWS):
        ids = torch.tensor(blocks[begin : begin + _BATCH_ROWS])
        seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

        def watch(
            _layer: int,
            residual: Tensor,
            x: Tensor,
            channels: Tensor,
            output: Tensor,
            seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = seen,
        ) -> None:
            if output.requires_grad:
                output.retain_grad()
            else:
                output.requires_grad_()
            rms = residual.detach().float().pow(2).mean(-1).sqrt()
            seen.append((x.detach(), channels.detach(), rms, output))

        log_probability = F.log_softmax(network.logits(network.hidden(ids, watch=watch)), dim=-1)
        likelihood = log_probability.detach().exp().flatten(0, 1)
        sampled = torch.multinomial(likelihood, 1, generator=generator).view(*ids.shape, 1)
        torch.autograd.backward(log_probability.gather(-1, sampled).sum())
        for part, (x, channels, rms, output) in zip(parts, seen, strict=True):
            assert output.grad is not None
            row = (
                x.flatten(0, 1),
                channels.flatten(0, 1),
                output.grad.flatten(0, 1),
                rms.flatten(),
            )
            part.append(row)
    return [
        LayerCapture(*(torch.cat(column) for column in zip(*part, strict=True))) for part in parts
    ]
