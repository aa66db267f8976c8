"""Choice of experts as a mask on channels, and what such a choice looks like over many tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from resources.demo.derived import Derived
from resources.demo.split import SHARED


class RoutedChoice:
    """A channel choice that keeps the shared channels and those of the top-k experts.

    It also counts how often each expert was chosen, over all tokens it is given: prompts, and the
    few padding tokens of a batch, are among them.
    """

    def __init__(self, derived: Derived, top_k: int) -> None:
        self.top_k = top_k
        self._num_experts = derived.shape.num_experts
        index = derived.assignment.astype(np.int64)
        index[index == SHARED] = self._num_experts
        self._expert_of_channel = torch.from_numpy(index)
        self._routers = [torch.from_numpy(router) for router in derived.routers]
        self.counts = torch.zeros(len(self._routers), self._num_experts)
        self.repeats = torch.zeros(len(self._routers))
        self.num_pairs = 0

    def __call__(self, layer: int, x: Tensor, channels: Tensor) -> Tensor:
        """Return the channels with those of experts not chosen set to zero."""
        scores = x.float() @ self._routers[layer].T
        chosen = scores.topk(self.top_k, dim=-1).indices
        mask = torch.zeros_like(scores).scatter_(-1, chosen, 1.0)
        self.counts[layer] += mask.flatten(0, -2).sum(0)
        self.repeats[layer] += (mask[:, 1:] * mask[:, :-1]).sum() / self.top_k
        if layer == 0:
            self.num_pairs += mask.shape[0] * (mask.shape[1] - 1)
        with_shared = torch.cat((mask, torch.ones_like(mask[..., :1])), dim=-1)
        return channels * with_shared[..., self._expert_of_channel[layer]].to(channels.dtype)

    def use_shares(self) -> Tensor:
        """Return per layer and expert the share of tokens that chose it."""
        return self.counts / self.counts.sum(dim=1, keepdim=True) * self.top_k

    def repeat_ratio(self) -> float:
        """Return the mean share of a token's experts that the next token chooses again."""
        return float(self.repeats.mean()) / max(self.num_pairs, 1)
