"""Kernels for cards: packed weights are read once and unpacked in registers, where that pays."""

import importlib.util
import logging
from collections.abc import Callable, Sequence

import numpy as np
import torch

from runtime.kernels import composition
from runtime.kernels.activations import as_input
from runtime.kernels.base import PLAIN_STYLE, ExpertStyle
from runtime.kernels.formats import pack
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.reference import ReferenceKernels
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import PLAIN_FORMATS, ExpertLayout, ExpertPart, MatrixLayout

_LOG = logging.getLogger(__name__)
MultiplyRows = Callable[[list[Matrix], torch.Tensor, torch.Tensor], torch.Tensor]
"""The product of each matrix with its own row of some; see ``triton_matvec.multiply_rows``."""
_TRIED_ROWS, _TRIED_COLUMNS = 24, 70
_TRIED_ERROR = 1e-3
"""Of results around 10, which sums of another order move by a millionth."""

MAX_PAIRS = 128
"""So many pairs of a token and an expert are computed in one launch; for more of them weights are
unpacked once for all tokens, as the reference does."""
MAX_ROWS = 8
"""The same for rows of a dense product."""


def has_triton() -> bool:
    """Whether Triton is installed; it is not imported."""
    return importlib.util.find_spec("triton") is not None


class TritonKernels(ReferenceKernels):
    """The reference with products of few rows as Triton programs.

    Each format is tried once against the reference where its weights lie; one that cannot be
    compiled there or comes to something else is left to the reference, which the log says. Sums
    are of another order than the reference's, and of the same one in every call.

    Threads: one caller at a time.
    """

    name = "triton"
    is_row_invariant = False

    def __init__(self, multiply: MultiplyRows | None = None) -> None:
        """Take another way to multiply, where Triton's own programs are not wanted."""
        self._multiply = _multiply_by_triton if multiply is None else multiply
        self._is_trusted: dict[WeightFormat, bool] = {}

    def linear(
        self, x: torch.Tensor, matrix: Matrix, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``x[n, columns]`` times the matrix transposed, plus the bias: ``[n, rows]``."""
        if not 0 < len(x) <= MAX_ROWS or not self._trusts(matrix.format, x.device):
            return super().linear(x, matrix, bias)
        sources = torch.arange(len(x), device=x.device)
        result = self._product([matrix] * len(x), x, sources)
        return result if bias is None else result + bias

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

        Each token's experts are added in their order.
        """
        weight_format = layout[ExpertPart.GATE].format
        if ids.numel() > MAX_PAIRS or not self._trusts(weight_format, x.device):
            super().experts(x, layout, experts, ids, weights, out, style)
            return
        chosen = ids.tolist()
        pairs = [
            (token, row.index(number), number, slot)
            for number, slot in experts
            for token, row in enumerate(chosen)
            if number in row
        ]
        if not pairs:
            return
        tokens = torch.tensor([pair[0] for pair in pairs], device=x.device)
        places = torch.tensor([pair[1] for pair in pairs], device=x.device)
        matrices = [pair[3].matrices(layout.parts) for pair in pairs]

        def product(part: ExpertPart, rows: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
            own = [each[part] for each in matrices]
            result = self._product(own, rows, sources)
            if style.biases is None:
                return result
            index = {ExpertPart.GATE: 0, ExpertPart.UP: 1, ExpertPart.DOWN: 2}[part]
            of_pair = [style.biases.of(pair[2])[index] for pair in pairs]
            return result + torch.stack(of_pair)

        gate = product(ExpertPart.GATE, x, tokens)
        up = product(ExpertPart.UP, x, tokens)
        hidden = composition.glu(gate, up, style.activation)
        own_rows = torch.arange(len(pairs), device=x.device)
        result = product(ExpertPart.DOWN, hidden, own_rows)
        result *= weights[tokens, places].unsqueeze(1)
        # One expert after the other, so that a token's sum has one order on every card.
        first = 0
        for number, _ in experts:
            end = first + sum(pair[2] == number for pair in pairs)
            if end > first:
                out.index_add_(0, tokens[first:end], result[first:end])
            first = end

    def _product(
        self, matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor
    ) -> torch.Tensor:
        """Return the product of each matrix with its row of ``x``, seen in eight bits."""
        return self._multiply(matrices, as_input(matrices[0].format, x).contiguous(), sources)

    def _trusts(self, weight_format: WeightFormat, device: torch.device) -> bool:
        """Return whether a format is multiplied rightly on a device; it is tried once."""
        if weight_format in PLAIN_FORMATS:
            return False
        if weight_format not in self._is_trusted:
            self._is_trusted[weight_format] = self._agrees(weight_format, device)
        return self._is_trusted[weight_format]

    def _agrees(self, weight_format: WeightFormat, device: torch.device) -> bool:
        """Compare a small product with the reference's; what goes wrong is told to the log."""
        numbers = np.random.default_rng(0).standard_normal((_TRIED_ROWS + 2, _TRIED_COLUMNS))
        weights, x = np.split(numbers.astype(np.float32), [_TRIED_ROWS])
        data = torch.from_numpy(pack(weight_format, weights)).to(device)
        layout = MatrixLayout(weight_format, _TRIED_ROWS, _TRIED_COLUMNS, 0, data.numel())
        matrix, rows = Matrix.from_buffer(layout, data), torch.from_numpy(x).to(device)
        expected = super().linear(rows, matrix)
        sources = torch.arange(len(rows), device=device)
        try:
            found = self._product([matrix] * len(rows), rows, sources)
            error = float((found - expected).abs().max())
        except Exception:  # noqa: BLE001 - compilers of cards fail in ways of their own
            _LOG.warning("no Triton programs for %s here", weight_format, exc_info=True)
            return False
        if not error <= _TRIED_ERROR:
            _LOG.warning("Triton's %s is off by %g here and is not used", weight_format, error)
            return False
        return True


def _multiply_by_triton(
    matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor
) -> torch.Tensor:
    """Multiply by Triton's programs; import it where it is used, since few machines have it."""
    from runtime.kernels.triton_matvec import multiply_rows

    return multiply_rows(matrices, x, sources)
