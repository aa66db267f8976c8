"""What every set of kernels offers to the models."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol, Self

import torch

from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix, Slot
from runtime.spec.blocks import SILU, Activation, Routing
from runtime.spec.tensors import ExpertLayout


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RopeTables:
    """Cosines and sines of the rotary angles: f32 ``[max_positions, num_angles]`` each.

    The first ``2 * num_angles`` channels of a head are turned, in the half-split convention
    (channel ``i`` with channel ``i + num_angles``) or, if ``is_interleaved``, each with its
    neighbour (``2 * i`` with ``2 * i + 1``); the others stay.
    """

    cosines: torch.Tensor
    sines: torch.Tensor
    is_interleaved: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExpertBiases:
    """What some experts add behind each of their matrices: a row of f32 for each of ``numbers``."""

    numbers: tuple[int, ...]
    gate: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor

    def of(self, number: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the biases of one expert: gate, up, down."""
        row = self.numbers.index(number)
        return self.gate[row], self.up[row], self.down[row]

    def cpu(self) -> Self:
        """Return the same in RAM."""
        parts = (self.gate.cpu(), self.up.cpu(), self.down.cpu())
        return dataclasses.replace(self, gate=parts[0], up=parts[1], down=parts[2])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExpertStyle:
    """What experts do between and behind their matrices."""

    activation: Activation = SILU
    biases: ExpertBiases | None = None

    def cpu(self) -> Self:
        """Return the same with everything in RAM."""
        return self if self.biases is None else dataclasses.replace(self, biases=self.biases.cpu())


PLAIN_STYLE = ExpertStyle()


@dataclasses.dataclass(frozen=True, slots=True)
class HeadRows:
    """Which rows of its own part of a matrix each head uses, and whether as columns."""

    first: int
    end: int
    is_transposed: bool


FixedWork = Callable[[torch.Tensor, int, KvPages], Sequence[torch.Tensor]]
"""What every token computes alike of a layer: takes the stream, which it changes, the position and
the layer's pages; returns what the rest of the layer needs."""


class Kernels(Protocol):
    """The arithmetic of a model on contiguous f32 CPU tensors and on weights where they lie.

    ``n`` is the number of rows (tokens) in a call. Row ``i`` of a result depends on row ``i`` of
    the input alone. Native kernels promise more: its bits are the same whatever ``n``, the row's
    place in the call, the page size and the number of threads; the reference promises that only
    within the rounding of its library. Results of two kernel sets agree within rounding.

    Threads: one caller at a time; the work inside is spread over the kernels' own threads.
    """

    @property
    def name(self) -> str:
        """``native-avx512``, ``native-avx2``, ``native-portable`` or ``reference``."""

    @property
    def is_row_invariant(self) -> bool:
        """Whether a row's bits are independent of the rows that share its call."""

    def linear(
        self, x: torch.Tensor, matrix: Matrix, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``x[n, columns]`` times the matrix transposed, plus the bias: ``[n, rows]``."""

    def gated(
        self,
        x: torch.Tensor,
        gate: Matrix,
        up: Matrix,
        down: Matrix,
        activation: Activation = SILU,
    ) -> torch.Tensor:
        """Return the gated feed-forward, ``down(silu(gate(x)) * up(x))``: ``[n, down.rows]``.

        Another ``activation`` takes the place of the SiLU.
        """

    def heads_linear(self, x: torch.Tensor, matrix: Matrix, rows: HeadRows) -> torch.Tensor:
        """Return for each head its product with its own rows of a matrix.

        The matrix' rows are shared out evenly to the heads of ``x[n, heads, width]``; of its part
        a head uses ``rows``: the result is ``[n, heads, number of rows]``, or, transposed,
        ``[n, heads, columns]``.
        """

    def experts(
        self,
        x: torch.Tensor,
        layout: ExpertLayout,
        experts: Sequence[tuple[int, Slot]],
        ids: torch.Tensor,
        weights: torch.Tensor,
        out: torch.Tensor,
        style: ExpertStyle = PLAIN_STYLE,
    ) -> None:
        """Add the weighted results of the given experts to ``out[n, hidden]``, in place.

        ``ids[n, k]`` (int32) and ``weights[n, k]`` are what ``route`` returned; ``experts`` are
        numbers with the slots that hold them. An expert works on the rows that chose it; choices
        that are not among ``experts`` are passed over. Additions to a row follow the order of
        ``experts``: with ascending numbers, one call with all and several calls with
        consecutive parts of them give the same bits.
        """

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Return ``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimension."""

    def layer_norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Return ``(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`` over the last dimension."""

    def rope(self, x: torch.Tensor, start_position: int, tables: RopeTables) -> None:
        """Turn ``x[n, heads, head_dim]`` in place; row ``i`` is at ``start_position + i``."""

    def route(
        self, logits: torch.Tensor, top_k: int, *, is_normalised: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose ``top_k`` experts of ``logits[n, num_experts]`` for each row.

        Returns ids (int32 ``[n, k]``, ascending in each row) and weights (f32 ``[n, k]``): the
        softmax over all experts at the chosen ones, divided by their sum if normalised. Of equal
        logits the lower id is chosen.
        """

    def choose(
        self, logits: torch.Tensor, routing: Routing, correction: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose experts by any routing; results are as those of ``route``.

        ``correction`` (f32 ``[num_experts]``) is there exactly if the routing has one.
        """

    def store_kv(
        self, pages: KvPages, start_position: int, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Write ``keys`` and ``values`` ``[n, num_kv_heads, head_dim]`` from a position on."""

    def attention(
        self,
        q: torch.Tensor,
        pages: KvPages,
        start_position: int,
        *,
        scale: float,
        window: int = 0,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return causal attention of ``q[n, heads, head_dim]``: ``[n, heads * head_dim]``.

        Row ``i`` is at ``start_position + i`` and sees the positions up to its own that are
        stored in the pages, of them the last ``window`` if that is not 0. Query head ``h`` uses
        KV head ``h // (heads // num_kv_heads)``. ``sinks[heads]`` are further scores, scaled
        already, that take part in the softmax and add nothing.
        """

    def embed(self, matrix: Matrix, ids: torch.Tensor) -> torch.Tensor:
        """Return rows ``ids`` (int32 or int64 ``[n]``) of a matrix as f32 ``[n, columns]``."""

    def add_gated(self, out: torch.Tensor, x: torch.Tensor, logits: torch.Tensor) -> None:
        """Add ``sigmoid(logits[n, 1]) * x[n, m]`` to ``out[n, m]``, in place."""
