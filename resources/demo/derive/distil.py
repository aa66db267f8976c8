"""Training of all routers together against the dense model's next-token distribution."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from resources.demo.derive.network import DenseNetwork
from resources.demo.derive.relaxation import soft_top_k
from resources.demo.split import SHARED, SplitShape

_RIDGE = 0.02
_WARM_UP_STEPS = 6


class RouterTraining:
    """Routers as parameters in whitened coordinates, over a network in expert order.

    In the model's own coordinates a few directions are hundreds of times longer than the others,
    and no step size suits all of them.
    """

    def __init__(
        self,
        network: DenseNetwork,
        split: SplitShape,
        assignment: Tensor,
        routers: Sequence[Tensor],
        inputs: Sequence[Tensor],
    ) -> None:
        self._split = split
        self._dense = network
        self._ordered = _in_expert_order(network, assignment)
        self._whitening: list[Tensor] = []
        self._parameters: list[Tensor] = []
        self._temperature = 0.0
        for router, x in zip(routers, inputs, strict=True):
            moment = x.float().T @ x.float() / len(x)
            ridge = _RIDGE * moment.diagonal().mean() * torch.eye(len(moment))
            factor = torch.linalg.cholesky(moment + ridge)
            whitening = torch.linalg.inv(factor).T.contiguous()
            value = factor.T @ (router - router.mean(1, keepdim=True))
            value = value / (x.float() @ whitening @ value).std()
            self._whitening.append(whitening)
            self._parameters.append(value.requires_grad_())

    def train(
        self,
        batches: Sequence[Sequence[Sequence[int]]],
        learning_rate: float,
        report: Callable[[int, float], None],
    ) -> None:
        """Take one step per batch of equally long id rows; rate and temperature fall to the end."""
        optimizer = torch.optim.Adam(self._parameters, lr=learning_rate, betas=(0.9, 0.97))
        for step, batch in enumerate(batches):
            done = step / len(batches)
            self._temperature = 0.25 * (1 - done) + 0.07
            rate = learning_rate * min(1.0, (step + 1) / _WARM_UP_STEPS) * (1 - done)
            optimizer.param_groups[0]["lr"] = rate
            ids = torch.tensor(batch)
            with torch.no_grad():
                dense = F.log_softmax(self._dense.logits(self._dense.hidden(ids)), dim=-1)
            hidden = self._ordered.hidden(ids, self._choose)
            moe = F.log_softmax(self._ordered.logits(hidden), dim=-1)
            loss = (dense.exp() * (dense - moe)).sum(-1).mean()
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
            optimizer.step()
            report(step, float(loss.detach()))

    def routers(self) -> list[Tensor]:
        """Return the routers (experts x hidden) in the model's own coordinates."""
        return [
            (whitening @ value.detach()).T.contiguous()
            for whitening, value in zip(self._whitening, self._parameters, strict=True)
        ]

    def _choose(self, layer: int, x: Tensor, channels: Tensor) -> Tensor:
        scores = (x.float() @ self._whitening[layer]) @ self._parameters[layer]
        mask = soft_top_k(scores, self._split.top_k, self._temperature).to(channels.dtype)
        shared_size = self._split.shared_size
        routed = channels[..., shared_size:].reshape(*mask.shape, self._split.expert_size)
        kept = (routed * mask[..., None]).flatten(-2)
        return torch.cat((channels[..., :shared_size], kept), dim=-1)


def _in_expert_order(network: DenseNetwork, assignment: Tensor) -> DenseNetwork:
    """Return the network with every layer's channels sorted: shared first, then by expert."""
    layers = []
    for layer, marks in zip(network.layers, assignment, strict=True):
        key = torch.where(marks == SHARED, -1, marks.long())
        order = key.argsort(stable=True)
        layers.append(
            dataclasses.replace(
                layer,
                gate=layer.gate[order].contiguous(),
                up=layer.up[order].contiguous(),
                down=layer.down[:, order].contiguous(),
            )
        )
    return dataclasses.replace(network, layers=layers)
