"""Soft stand-in for the choice of the k best experts, through which gradients can flow."""

from __future__ import annotations

import torch
from torch import Tensor

_NUM_HALVINGS = 18


def soft_top_k(scores: Tensor, top_k: int, temperature: float) -> Tensor:
    """Return values between 0 and 1 that sum to k and near the k best's mask when it is cold.

    The common threshold is found by halving an interval; its own gradient keeps the sum fixed, so
    that raising one expert lowers the others.
    """
    with torch.no_grad():
        low = scores.min(dim=-1, keepdim=True).values - 20 * temperature
        high = scores.max(dim=-1, keepdim=True).values + 20 * temperature
        for _ in range(_NUM_HALVINGS):
            middle = (low + high) / 2
            too_many = ((scores - middle) / temperature).sigmoid().sum(-1, keepdim=True) > top_k
            low = torch.where(too_many, middle, low)
            high = torch.where(too_many, high, middle)
        threshold = (low + high) / 2
        open_ness = ((scores - threshold) / temperature).sigmoid()
        slope = open_ness * (1 - open_ness)
        share = slope / slope.sum(-1, keepdim=True).clamp(min=1e-6)
    moving = threshold + (share * (scores - scores.detach())).sum(-1, keepdim=True)
    return ((scores - moving) / temperature).sigmoid()
