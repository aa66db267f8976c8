"""Arithmetic put together from simpler kernels and torch, for what a kernel set has not fused.

Over row-invariant kernels the results are row-invariant too: products go through the kernels,
torch is left with single operations on rows of even width and with work done row by row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch

from runtime.kernels.base import ExpertStyle, HeadRows, Kernels, RopeTables
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.tensor_formats import PLAIN_TYPES, unpack_tensor
from runtime.spec.blocks import Activation, ActivationKind, Routing, Score
from runtime.spec.tensors import ExpertLayout, ExpertPart

_EVEN = 64
"""Rows of a multiple of so many numbers are computed by vector instructions alone, so that their
bits do not depend on the place of a row in its tensor."""


def gated(
    kernels: Kernels,
    x: torch.Tensor,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
    activation: Activation,
) -> torch.Tensor:
    """Return the gated feed-forward of rows with any activation."""
    hidden = glu(kernels.linear(x, gate), kernels.linear(x, up), activation)
    return kernels.linear(hidden, down)


def add_experts(
    kernels: Kernels,
    x: torch.Tensor,
    experts: Iterable[tuple[int, Mapping[ExpertPart, Matrix]]],
    ids: torch.Tensor,
    weights: torch.Tensor,
    out: torch.Tensor,
    style: ExpertStyle,
) -> None:
    """Add the weighted results of experts of any style to ``out``, in place."""
    for number, parts in experts:
        rows, places = torch.nonzero(ids == number, as_tuple=True)
        if len(rows) == 0:
            continue
        gate_bias, up_bias, down_bias = (
            style.biases.of(number) if style.biases is not None else (None, None, None)
        )
        chosen = x[rows]
        gate = kernels.linear(chosen, parts[ExpertPart.GATE], gate_bias)
        up = kernels.linear(chosen, parts[ExpertPart.UP], up_bias)
        hidden = glu(gate, up, style.activation)
        result = kernels.linear(hidden, parts[ExpertPart.DOWN], down_bias)
        out[rows] += weights[rows, places].unsqueeze(1) * result


def matrices_of(
    layout: ExpertLayout, experts: Sequence[tuple[int, Slot]]
) -> Iterator[tuple[int, Mapping[ExpertPart, Matrix]]]:
    """Yield experts with the matrices in their slots."""
    for number, slot in experts:
        yield number, slot.matrices(layout.parts)


def glu(gate: torch.Tensor, up: torch.Tensor, activation: Activation) -> torch.Tensor:
    """Return what a gated block has between its matrices."""
    match activation.kind:
        case ActivationKind.SILU:
            return in_even_rows(torch.nn.functional.silu, gate) * up
        case ActivationKind.GELU_TANH:
            return in_even_rows(_gelu_tanh, gate) * up
        case ActivationKind.CLAMPED_SWIGLU:
            gate = gate.clamp(max=activation.limit)
            up = up.clamp(min=-activation.limit, max=activation.limit)
            return gate * in_even_rows(torch.sigmoid, gate * activation.alpha) * (up + 1)


def in_even_rows(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Return a function of each number; bits do not depend on where a row lies."""
    width = x.shape[-1]
    missing = -width % _EVEN
    if not missing:
        return function(x.contiguous())
    return function(torch.nn.functional.pad(x, (0, missing)))[..., :width].contiguous()


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Return rows with mean 0 and variance 1, times the weights, plus the bias."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def rope_interleaved(x: torch.Tensor, start_position: int, tables: RopeTables) -> None:
    """Turn neighbours of ``x[n, heads, head_dim]`` in place."""
    here = slice(start_position, start_position + len(x))
    cosines, sines = tables.cosines[here].unsqueeze(1), tables.sines[here].unsqueeze(1)
    end = 2 * tables.cosines.shape[1]
    even, odd = x[..., 0:end:2].clone(), x[..., 1:end:2].clone()
    x[..., 0:end:2] = even * cosines - odd * sines
    x[..., 1:end:2] = odd * cosines + even * sines


def choose(
    logits: torch.Tensor, routing: Routing, correction: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose experts of ``logits[n, num_experts]`` by any routing; see ``Kernels.choose``."""
    if routing.score is Score.SPARSE_MIXER:
        ids, weights = _mix_sparsely(logits, routing)
    else:
        scores = (
            torch.softmax(logits, dim=-1)
            if routing.score is Score.SOFTMAX
            else in_even_rows(torch.sigmoid, logits)
        )
        wanted = scores if correction is None else scores + correction
        wanted = _within_groups(wanted, routing)
        ids = _order(wanted)[:, : routing.top_k].sort(dim=-1).values
        weights = scores.gather(1, ids)
    if routing.is_normalised:
        weights = weights / _row_sum(weights).clamp(min=routing.least_sum)
    if routing.scale != 1.0:
        weights = weights * routing.scale
    return ids.to(torch.int32), weights


def heads_linear(kernels: Kernels, x: torch.Tensor, matrix: Matrix, rows: HeadRows) -> torch.Tensor:
    """Return each head's own product over plain kernels; see ``Kernels.heads_linear``."""
    heads = x.shape[1]
    plain, flat = PLAIN_TYPES.get(matrix.format), torch.as_tensor(matrix.data)
    if plain is None:
        flat = unpack_tensor(matrix.format, flat, matrix.rows, matrix.columns)
    else:
        flat = flat.view(plain)
    blocks = flat.view(heads, matrix.rows // heads, matrix.columns)[:, rows.first : rows.end]
    if rows.is_transposed:
        blocks = blocks.transpose(1, 2)
    own = (Matrix.from_tensor(block) for block in blocks.contiguous())
    parts = [kernels.linear(x[:, head].contiguous(), each) for head, each in enumerate(own)]
    return torch.stack(parts, dim=1)


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def _order(scores: torch.Tensor) -> torch.Tensor:
    """Return the experts of each row, best first; of equal ones the lower id."""
    return torch.sort(scores, dim=-1, descending=True, stable=True).indices


def _row_sum(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of each row, added up from the left."""
    total = x[:, :1]
    for place in range(1, x.shape[1]):
        total = total + x[:, place : place + 1]
    return total


def _within_groups(scores: torch.Tensor, routing: Routing) -> torch.Tensor:
    """Return the scores with those outside the best groups hidden."""
    groups = routing.groups
    if groups is None:
        return scores
    n, num_experts = scores.shape
    grouped = scores.view(n, groups.num_groups, num_experts // groups.num_groups)
    best = grouped.sort(dim=-1, descending=True).values[..., : groups.num_best]
    goodness = _row_sum(best.flatten(0, 1)).view(n, groups.num_groups)
    kept = _order(goodness)[:, : groups.num_kept]
    is_hidden = torch.ones_like(goodness, dtype=torch.bool).scatter(1, kept, value=False)
    return grouped.masked_fill(is_hidden.unsqueeze(-1), -torch.inf).view(n, num_experts)


def _mix_sparsely(logits: torch.Tensor, routing: Routing) -> tuple[torch.Tensor, torch.Tensor]:
    """Take the best expert again and again, each weighed among those that are nearly as good."""
    remaining = logits.clone()
    ids: list[torch.Tensor] = []
    weights: list[torch.Tensor] = []
    for _ in range(routing.top_k):
        first = _order(remaining)[:, :1]
        best = remaining.gather(1, first)
        is_far = (best - logits) / torch.maximum(logits.abs(), best) > 2 * routing.jitter
        shares = torch.softmax(remaining.masked_fill(is_far, -torch.inf), dim=-1)
        ids.append(first)
        weights.append(shares.gather(1, first))
        remaining.scatter_(1, first, -torch.inf)
    chosen, places = torch.cat(ids, dim=1).sort(dim=-1)
    return chosen, torch.cat(weights, dim=1).gather(1, places)
