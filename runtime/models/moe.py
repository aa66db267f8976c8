"""Feed-forward blocks: dense, and mixture of experts with an optional shared one."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

import torch

from runtime.kernels.base import ExpertBiases, ExpertStyle, Kernels
from runtime.kernels.matrix import Matrix, Slot
from runtime.models.base import DenseWeights, ExpertSource, Parts
from runtime.models.foresight import look_ahead
from runtime.spec.blocks import Routing
from runtime.spec.tensors import ExpertLayout


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

    def __init__(self, parts: Parts, matrices: GatedMatrices) -> None:
        self._kernels = parts.kernels
        self._activation = parts.spec.activation
        self._matrices = matrices

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output for rows ``x``."""
        matrices = self._matrices
        return self._kernels.gated(x, matrices.gate, matrices.up, matrices.down, self._activation)

    def fixed(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the block's output: nothing of it is chosen."""
        return (self(x),)

    def rest(self, x: torch.Tensor, fixed: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return what was computed."""
        del x
        return fixed[0]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SharedExpert:
    """The expert that always runs, scaled by the sigmoid of a one-row router if it has one."""

    matrices: GatedMatrices
    gate: Matrix | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Router:
    """What chooses experts: its matrix, and the vectors that some families add."""

    kernels: Kernels
    routing: Routing
    matrix: Matrix
    bias: torch.Tensor | None = None
    correction: torch.Tensor | None = None
    """Added to the scores for the choice alone."""
    expert_scales: torch.Tensor | None = None
    """What the weight of each expert is multiplied with in the end."""

    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and weights as ``Kernels.route`` does."""
        kernels, routing = self.kernels, self.routing
        logits = kernels.linear(x, self.matrix, self.bias)
        if routing.is_plain:
            ids, weights = kernels.route(logits, routing.top_k, is_normalised=routing.is_normalised)
        else:
            ids, weights = kernels.choose(logits, routing, self.correction)
        if self.expert_scales is not None:
            weights = weights * self.expert_scales[ids.to(torch.int64)]
        return ids, weights


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class BiasMatrices:
    """The biases of all experts of a layer, one row for each: gate and up in one, and down."""

    gate_up: Matrix
    down: Matrix
    is_interleaved: bool
    """Gate and up take turns in a row; otherwise up follows gate."""

    def of(self, kernels: Kernels, numbers: Sequence[int]) -> ExpertBiases:
        """Return the biases of some experts as kernels take them."""
        ids = torch.tensor(numbers, dtype=torch.int64)
        both = kernels.embed(self.gate_up, ids)
        width = both.shape[1] // 2
        gate, up = (
            (both[:, ::2], both[:, 1::2])
            if self.is_interleaved
            else (both[:, :width], both[:, width:])
        )
        down = kernels.embed(self.down, ids)
        return ExpertBiases(tuple(numbers), gate.contiguous(), up.contiguous(), down)


class MoeBlock:
    """Routed experts of one layer, and the shared one where there is one.

    Contributions are added in an order that the model alone decides (formats, then numbers), the
    shared one last, so that the result does not depend on which experts are resident or how many
    fit at once.
    """

    def __init__(
        self,
        parts: Parts,
        layer: int,
        router: Router,
        shared: SharedExpert | None = None,
        biases: BiasMatrices | None = None,
    ) -> None:
        self._kernels = parts.kernels
        self._activation = parts.spec.activation
        self._layer = layer
        self._router = router
        self._routers = parts.routers
        parts.routers[layer] = router
        self._experts = parts.experts
        self._shared = shared
        self._biases = biases
        self._style = ExpertStyle(self._activation)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output for rows ``x``."""
        out = self.routed(x, *self._router(x))
        self._add_shared(out, self._of_shared(x))
        return out

    def fixed(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return ids and weights of the chosen experts, and what the shared one gives."""
        return (*self._router(x), *self._of_shared(x))

    def rest(self, x: torch.Tensor, fixed: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the block's output for rows ``x``, given what is fixed of them."""
        ids, weights, *shared = fixed
        out = self.routed(x, ids, weights)
        self._add_shared(out, shared)
        return out

    def _of_shared(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return what the shared expert gives, and what its router says where it has one."""
        shared = self._shared
        if shared is None:
            return ()
        kernels, matrices = self._kernels, shared.matrices
        result = kernels.gated(x, matrices.gate, matrices.up, matrices.down, self._activation)
        return (result,) if shared.gate is None else (result, kernels.linear(x, shared.gate))

    def _add_shared(self, out: torch.Tensor, shared: Sequence[torch.Tensor]) -> None:
        """Add what the shared expert gives."""
        match shared:
            case [result, logits]:
                self._kernels.add_gated(out, result, logits)
            case [result]:
                out += result
            case _:
                pass

    def routed(self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return what the chosen experts give for rows ``x``."""
        self._experts.note_routing(self._layer, ids, weights)
        out = torch.zeros_like(x)
        is_guess_due = x.shape[0] == 1
        experts, layer = self._experts, self._layer
        chosen = experts.ordered(layer, _distinct(ids))
        with contextlib.closing(experts.runs(layer, chosen)) as runs:
            for pairs in runs:
                if is_guess_due:
                    # The misses of this layer are on their way by now.
                    is_guess_due = False
                    look_ahead(self._layer, x, self._routers, self._experts)
                style = self._style
                if self._biases is not None:
                    numbers = [number for number, _ in pairs]
                    biases = self._biases.of(self._kernels, numbers)
                    style = ExpertStyle(self._activation, biases)
                for layout, run in _of_one_layout(experts, layer, pairs):
                    self._kernels.experts(x, layout, run, ids, weights, out, style)
        return out


def _of_one_layout(
    experts: ExpertSource, layer: int, pairs: Sequence[tuple[int, Slot]]
) -> Iterator[tuple[ExpertLayout, Sequence[tuple[int, Slot]]]]:
    """Yield parts of a run, in its order, each of experts that lie in the same way."""
    begin, layout = 0, None
    for place, (number, _) in enumerate(pairs):
        own = experts.layout_of(layer, number)
        if layout is not None and own is not layout:
            yield layout, pairs[begin:place]
            begin = place
        layout = own
    if layout is not None:
        yield layout, pairs[begin:]


def _distinct(ids: torch.Tensor) -> list[int]:
    """Return the experts that any row chose, ascending; ``ids`` ascend in each row."""
    if ids.shape[0] == 1:
        one_row: list[int] = ids[0].tolist()
        return one_row
    many_rows: list[int] = torch.unique(ids).tolist()
    return many_rows
