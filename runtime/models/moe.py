"""Feed-forward blocks: dense, and mixture of experts with an optional shared one."""

import dataclasses
from collections.abc import Sequence

import torch

from runtime.kernels.base import Kernels
from runtime.kernels.matrix import Matrix
from runtime.models.base import DenseWeights, ExpertSource


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class GatedMatrices:
    """The three matrices of a dense gated feed-forward block."""

    gate: Matrix
    up: Matrix
    down: Matrix


def gated_matrices(weights: DenseWeights, prefix: str) -> GatedMatrices:
    """Return the matrices named ``gate_proj``, ``up_proj`` and ``down_proj`` below a prefix."""
    return GatedMatrices(
        weights.matrix(f"{prefix}.gate_proj.weight"),
        weights.matrix(f"{prefix}.up_proj.weight"),
        weights.matrix(f"{prefix}.down_proj.weight"),
    )


class DenseBlock:
    """A feed-forward block that every token takes whole."""

    def __init__(self, kernels: Kernels, matrices: GatedMatrices) -> None:
        self._kernels = kernels
        self._matrices = matrices

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output for rows ``x``."""
        matrices = self._matrices
        return self._kernels.gated(x, matrices.gate, matrices.up, matrices.down)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SharedExpert:
    """The expert that always runs, scaled by the sigmoid of its own one-row router."""

    matrices: GatedMatrices
    gate: Matrix


@dataclasses.dataclass(frozen=True, slots=True)
class Routing:
    """How many experts a token takes, and whether their weights are made to sum to 1."""

    top_k: int
    is_normalised: bool


class MoeBlock:
    """Routed experts of one layer, and the shared one where there is one.

    Contributions are added in ascending order of the experts' numbers, the shared one last, so
    that the result does not depend on which experts are resident or how many fit at once.
    """

    def __init__(
        self,
        kernels: Kernels,
        layer: int,
        router: Matrix,
        routing: Routing,
        experts: ExpertSource,
        shared: SharedExpert | None = None,
    ) -> None:
        self._kernels = kernels
        self._layer = layer
        self._router = router
        self._routing = routing
        self._experts = experts
        self._layout = experts.layout
        self._shared = shared

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output for rows ``x``."""
        kernels, routing = self._kernels, self._routing
        ids, weights = kernels.route(
            kernels.linear(x, self._router), routing.top_k, is_normalised=routing.is_normalised
        )
        out = torch.zeros_like(x)
        chosen = _distinct(ids)
        for group in self._experts.groups(self._layer, chosen):
            self._add(x, group, ids, weights, out)
        shared = self._shared
        if shared is not None:
            matrices = shared.matrices
            result = kernels.gated(x, matrices.gate, matrices.up, matrices.down)
            kernels.add_gated(out, result, kernels.linear(x, shared.gate))
        return out

    def _add(
        self,
        x: torch.Tensor,
        group: Sequence[int],
        ids: torch.Tensor,
        weights: torch.Tensor,
        out: torch.Tensor,
    ) -> None:
        """Add the contributions of a group of experts that can be acquired at once."""
        slots = self._experts.acquire(self._layer, group)
        try:
            pairs = list(zip(group, slots, strict=True))
            self._kernels.experts(x, self._layout, pairs, ids, weights, out)
        finally:
            self._experts.release(self._layer, group)


def _distinct(ids: torch.Tensor) -> list[int]:
    """Return the experts that any row chose, ascending; ``ids`` ascend in each row."""
    if ids.shape[0] == 1:
        one_row: list[int] = ids[0].tolist()
        return one_row
    many_rows: list[int] = torch.unique(ids).tolist()
    return many_rows
