"""Grouping of a layer's channels into a shared expert and equally large routed experts."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from resources.demo.derive.capture import LayerCapture
from resources.demo.derive.training_text import BLOCK_TOKENS
from resources.demo.split import SHARED, SplitShape

_NUM_SINK_TOKENS = 2
_RIDGE = 0.02
_KMEANS_ROUNDS = 6
_EXCHANGE_ROUNDS = 10


def contributions(captured: LayerCapture, down: Tensor) -> Tensor:
    """Return how much each channel of each token is felt in the answer (tokens x channels).

    It is the squared channel value, relative to the residual stream, times the second moment of
    the gradient along the channel's output direction. Tokens that carry an attention sink are left
    out and the loudest half percent is capped: a few tokens must not decide for all.
    """
    rms = captured.residual_rms
    gradient = captured.gradient.float() * rms[:, None]
    length = gradient.norm(dim=1, keepdim=True)
    gradient *= (length.quantile(0.99) / length).clamp(max=1)
    moment = gradient.T @ gradient / len(gradient)
    moment += 0.1 * moment.diagonal().mean() * torch.eye(len(moment))
    values = captured.channels.float() / rms[:, None]
    for position in range(_NUM_SINK_TOKENS):
        values[position::BLOCK_TOKENS] = 0
    felt = values.square_() * (down * (moment @ down)).sum(0)
    total = felt.sum(1, keepdim=True)
    return felt * (total.quantile(0.995) / total.clamp(min=1e-9)).clamp(max=1)


def group_layer(
    captured: LayerCapture, down: Tensor, split: SplitShape, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the layer's assignment and its ridge-regression router (hidden x experts).

    The channels felt most are shared. The rest starts from balanced k-means over tokens and is
    then exchanged in turns: experts that a token would choose are fixed, and every channel moves
    to the expert whose tokens feel it most, all experts staying equally large.
    """
    felt = contributions(captured, down)
    num_channels = felt.shape[1]
    is_shared = torch.zeros(num_channels, dtype=torch.bool)
    is_shared[felt.mean(0).topk(split.shared_size).indices] = True
    routed = (~is_shared).nonzero().flatten()
    felt = felt[:, routed]
    x = captured.x.float()
    moment = x.T @ x
    ridge = _RIDGE * moment.diagonal().mean() * torch.eye(len(moment))
    factor = torch.linalg.cholesky(moment + ridge)

    owner = _first_grouping(felt, split, generator)
    router = torch.empty(0)
    for turn in range(_EXCHANGE_ROUNDS):
        by_expert = felt @ F.one_hot(owner, split.num_experts).float()
        target = (by_expert + 0.02 * by_expert.mean()).log()
        router = torch.cholesky_solve(x.T @ target, factor)
        if turn < _EXCHANGE_ROUNDS - 1:
            chosen = (x @ router).topk(split.top_k, dim=1).indices
            mask = torch.zeros_like(by_expert).scatter_(1, chosen, 1.0)
            owner = balanced_owners(felt.T @ mask, split.expert_size)
    assignment = torch.full((num_channels,), SHARED, dtype=torch.uint8)
    assignment[routed] = owner.to(torch.uint8)
    return assignment, router


def _first_grouping(felt: Tensor, split: SplitShape, generator: torch.Generator) -> Tensor:
    """Return owners by balanced k-means over the channels' profiles across tokens."""
    profile = F.normalize(felt[::2].sqrt(), dim=0)
    profile = F.normalize(profile - profile.mean(1, keepdim=True), dim=0)
    start = torch.randperm(profile.shape[1], generator=generator)[: split.num_experts]
    centres = profile[:, start]
    owner = torch.empty(0)
    for _ in range(_KMEANS_ROUNDS):
        owner = balanced_owners(profile.T @ centres, split.expert_size)
        members = F.one_hot(owner, split.num_experts).float()
        centres = F.normalize(profile @ members, dim=0)
    return owner


def balanced_owners(gain: Tensor, expert_size: int) -> Tensor:
    """Return an owner for each channel of a (channels x experts) gain, experts equally full.

    Prices that make every expert equally wanted are found by Sinkhorn's iteration at falling
    temperature; then the channels that have most to lose choose first.
    """
    gain = gain / (gain.std() + 1e-12)
    price = torch.zeros(1, gain.shape[1])
    for temperature in (1.0, 0.5, 0.2, 0.1, 0.05):
        for _ in range(40):
            best = -torch.logsumexp((gain + price) / temperature, 1, keepdim=True) * temperature
            wanted = torch.logsumexp((gain + best) / temperature, 0, keepdim=True)
            price = -(wanted - math.log(expert_size)) * temperature
    value = gain + price
    two_best = value.topk(2, dim=1).values
    owner = torch.full((len(gain),), -1)
    room = [expert_size] * gain.shape[1]
    for channel in (two_best[:, 0] - two_best[:, 1]).argsort(descending=True).tolist():
        expert = int(value[channel].argmax())
        owner[channel] = expert
        room[expert] -= 1
        if room[expert] == 0:
            value[:, expert] = -math.inf
    return owner
