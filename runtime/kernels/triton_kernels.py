"""Kernels for cards: packed weights are read once and unpacked in registers, where that pays."""

import dataclasses
import functools
import importlib.util
import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from runtime.kernels import composition
from runtime.kernels.activations import as_input
from runtime.kernels.base import PLAIN_STYLE, ExpertStyle
from runtime.kernels.formats import pack
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.reference import ReferenceKernels
from runtime.kernels.tiles import TileChoice
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import PLAIN_FORMATS, ExpertLayout, ExpertPart, MatrixLayout

_LOG = logging.getLogger(__name__)
MultiplyRows = Callable[[list[Matrix], torch.Tensor, torch.Tensor], torch.Tensor]
"""The product of each matrix with its own row of some; see ``triton_matvec.multiply_pairs``."""
_TRIED_ROWS, _TRIED_COLUMNS, _TRIED_TOKENS = 24, 70, 20
_TRIED_ERROR = 1e-3
"""Of results around 10, which sums of another order move by a millionth."""

MAX_PAIRS = 1024
"""So many pairs of a token and an expert are computed in one launch, which bounds the room that it
needs; one expert alone may have more."""
MAX_ROWS = 8
"""Dense products of more rows are left to the reference, which unpacks once for all."""


def has_triton() -> bool:
    """Whether Triton is installed; it is not imported."""
    return importlib.util.find_spec("triton") is not None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """An expert, and the places of ``ids`` that chose it: (token, place in its row)."""

    number: int
    matrices: Mapping[ExpertPart, Matrix]
    pairs: Sequence[tuple[int, int]]


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
        own = functools.partial(_multiply_by_triton, tiles=TileChoice())
        self._multiply = own if multiply is None else multiply
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

        Of several tokens, each one's experts are added in their order.
        """
        formats = layout.formats
        # Of plain numbers nothing is unpacked: many rows are a library's work.
        is_many = PLAIN_FORMATS.issuperset(formats) and len(x) > MAX_ROWS
        if is_many or not all(self._trusts(each, x.device) for each in formats):
            super().experts(x, layout, experts, ids, weights, out, style)
            return
        chosen: dict[int, list[tuple[int, int]]] = {}
        for token, row in enumerate(ids.tolist()):
            for place, number in enumerate(row):
                chosen.setdefault(number, []).append((token, place))
        own: list[_Own] = []
        for number, slot in experts:
            if number not in chosen:
                continue
            if own and sum(len(each.pairs) for each in own) + len(chosen[number]) > MAX_PAIRS:
                self._add(x, own, weights, out, style)
                own = []
            own.append(_Own(number, slot.matrices(layout.parts), chosen[number]))
        if own:
            self._add(x, own, weights, out, style)

    def _add(
        self,
        x: torch.Tensor,
        own: Sequence[_Own],
        weights: torch.Tensor,
        out: torch.Tensor,
        style: ExpertStyle,
    ) -> None:
        """Add the results of some experts for the rows that chose them."""
        pairs = torch.tensor([pair for each in own for pair in each.pairs], device=x.device)
        tokens, places = pairs.unbind(1)

        def product(part: ExpertPart, rows: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
            matrices = [each.matrices[part] for each in own for _ in each.pairs]
            result = self._product(matrices, rows, sources)
            if style.biases is None:
                return result
            index = list(ExpertPart).index(part)
            of_pair = [style.biases.of(each.number)[index] for each in own for _ in each.pairs]
            return result + torch.stack(of_pair)

        gate = product(ExpertPart.GATE, x, tokens)
        up = product(ExpertPart.UP, x, tokens)
        hidden = composition.glu(gate, up, style.activation)
        own_rows = torch.arange(len(pairs), device=x.device)
        result = product(ExpertPart.DOWN, hidden, own_rows)
        if len(x) == 1:
            # One launch instead of one for each expert.
            out.addmm_(weights[:, places], result)
            return
        result *= weights[tokens, places].unsqueeze(1)
        # One expert after the other, so that a token's sum has one order on every card.
        first = 0
        for each in own:
            end = first + len(each.pairs)
            out.index_add_(0, tokens[first:end], result[first:end])
            first = end

    def _product(
        self, matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor
    ) -> torch.Tensor:
        """Return the product of each matrix with its row of ``x``, seen in eight bits."""
        # Programs go by addresses: numbers have to follow each other.
        seen = as_input(matrices[0].format, x).contiguous()
        return self._multiply(matrices, seen, sources.contiguous())

    def _trusts(self, weight_format: WeightFormat, device: torch.device) -> bool:
        """Return whether a format is multiplied rightly on a device; it is tried once."""
        if weight_format not in self._is_trusted:
            self._is_trusted[weight_format] = self._agrees(weight_format, device)
        return self._is_trusted[weight_format]

    def _agrees(self, weight_format: WeightFormat, device: torch.device) -> bool:
        """Compare a small product with the reference's; what goes wrong is told to the log.

        Rows are so many that products of single rows and of many are both tried.
        """
        num_numbers = _TRIED_ROWS + _TRIED_TOKENS
        numbers = np.random.default_rng(0).standard_normal((num_numbers, _TRIED_COLUMNS))
        weights, x = np.split(numbers.astype(np.float32), [_TRIED_ROWS])
        data = torch.from_numpy(pack(weight_format, weights)).to(device)
        layout = MatrixLayout(weight_format, _TRIED_ROWS, _TRIED_COLUMNS, 0, data.numel())
        matrix, rows = Matrix.from_buffer(layout, data), torch.from_numpy(x).to(device)
        expected = super().linear(rows, matrix)
        sources = torch.arange(len(rows), device=device)
        try:
            many = self._product([matrix] * len(rows), rows, sources)
            one = self._product([matrix], rows, sources[:1])
            found = torch.cat([many - expected, one - expected[:1]])
            error = float(found.abs().max())
        except Exception:  # noqa: BLE001 - compilers of cards fail in ways of their own
            _LOG.warning("no Triton programs for %s here", weight_format, exc_info=True)
            return False
        if not error <= _TRIED_ERROR:
            _LOG.warning("Triton's %s is off by %g here and is not used", weight_format, error)
            return False
        return True


def _multiply_by_triton(
    matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor, *, tiles: TileChoice
) -> torch.Tensor:
    """Multiply by Triton's programs; import it where it is used, since few machines have it."""
    from runtime.kernels.triton_matvec import multiply_pairs

    return multiply_pairs(matrices, x, sources, tiles)
