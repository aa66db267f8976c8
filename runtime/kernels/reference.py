"""The reference that defines each kernel: weights unpacked, then plain torch in f32."""

from collections.abc import Sequence

import torch

from runtime.kernels import composition
from runtime.kernels.activations import as_input
from runtime.kernels.base import PLAIN_STYLE, ExpertStyle, HeadRows, RopeTables
from runtime.kernels.formats import unpack
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.tensor_formats import PLAIN_TYPES, unpack_tensor
from runtime.spec.blocks import SILU, Activation, Routing
from runtime.spec.tensors import ExpertLayout

PIECE_NUMBERS = 1 << 26
"""A matrix of more plain numbers is widened in pieces, so that 256 MiB of room are enough."""
SCORE_NUMBERS = 1 << 24
"""So many scores of attention are held at a time: 64 MiB, and some copies of them."""


class ReferenceKernels:
    """Kernels for machines without the extension, and for devices: right, and slow.

    They compute where their weights lie.

    Threads: one caller at a time; torch's own threads share the work.
    """

    name = "reference"
    is_row_invariant = False

    def linear(
        self, x: torch.Tensor, matrix: Matrix, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``x[n, columns]`` times the matrix transposed, plus the bias: ``[n, rows]``."""
        stored = _stored(matrix)
        if stored is None or stored.numel() <= PIECE_NUMBERS:
            return torch.nn.functional.linear(as_input(matrix.format, x), weights_of(matrix), bias)
        parts = torch.split(stored, max(1, PIECE_NUMBERS // matrix.columns))
        result = torch.cat([torch.nn.functional.linear(x, part.float()) for part in parts], dim=1)
        return result if bias is None else result + bias

    def gated(
        self,
        x: torch.Tensor,
        gate: Matrix,
        up: Matrix,
        down: Matrix,
        activation: Activation = SILU,
    ) -> torch.Tensor:
        """Return the gated feed-forward, ``down(silu(gate(x)) * up(x))``: ``[n, down.rows]``."""
        return composition.gated(self, x, gate, up, down, activation)

    def heads_linear(self, x: torch.Tensor, matrix: Matrix, rows: HeadRows) -> torch.Tensor:
        """Return for each head its product with its own rows of a matrix."""
        heads = x.shape[1]
        blocks = weights_of(matrix).view(heads, matrix.rows // heads, matrix.columns)
        equation = "nhr,hrc->nhc" if rows.is_transposed else "nhc,hrc->nhr"
        return torch.einsum(equation, x, blocks[:, rows.first : rows.end])

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
        """Add the weighted results of the given experts to ``out[n, hidden]``, in place."""
        pairs = composition.matrices_of(layout, experts)
        composition.add_experts(self, x, pairs, ids, weights, out, style)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Return ``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimension."""
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps) * weight

    def layer_norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Return ``(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`` over the last dimension."""
        return composition.layer_norm(x, weight, bias, eps)

    def rope(self, x: torch.Tensor, start_position: int, tables: RopeTables) -> None:
        """Turn ``x[n, heads, head_dim]`` in place; row ``i`` is at ``start_position + i``."""
        if tables.is_interleaved:
            composition.rope_interleaved(x, start_position, tables)
            return
        here = slice(start_position, start_position + len(x))
        cosines, sines = tables.cosines[here].unsqueeze(1), tables.sines[here].unsqueeze(1)
        num_angles = tables.cosines.shape[1]
        low, high = x[..., :num_angles].clone(), x[..., num_angles : 2 * num_angles].clone()
        x[..., :num_angles] = low * cosines - high * sines
        x[..., num_angles : 2 * num_angles] = high * cosines + low * sines

    def route(
        self, logits: torch.Tensor, top_k: int, *, is_normalised: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose ``top_k`` experts of ``logits[n, num_experts]`` for each row."""
        order = torch.sort(logits, dim=-1, descending=True, stable=True).indices
        ids = order[:, :top_k].sort(dim=-1).values
        weights = torch.softmax(logits, dim=-1).gather(1, ids)
        if is_normalised:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return ids.to(torch.int32), weights

    def choose(
        self, logits: torch.Tensor, routing: Routing, correction: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose experts by any routing; results are as those of ``route``."""
        return composition.choose(logits, routing, correction)

    def store_kv(
        self, pages: KvPages, start_position: int, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Write ``keys`` and ``values`` ``[n, num_kv_heads, head_dim]`` from a position on."""
        row = 0
        while row < len(keys):
            page, place = divmod(start_position + row, pages.page_tokens)
            end = min(len(keys), row + pages.page_tokens - place)
            here = slice(place, place + end - row)
            pages.keys[page][here] = keys[row:end]
            pages.values[page][here] = values[row:end]
            row = end

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
        """Return causal attention of ``q[n, heads, head_dim]``: ``[n, heads * head_dim]``."""
        n, heads, head_dim = q.shape
        # So many rows at a time that their scores take no more than is foreseen.
        num_rows = max(1, SCORE_NUMBERS // (heads * (start_position + n)))
        parts = [
            _attention_of(
                q[first : first + num_rows],
                pages,
                start_position + first,
                scale=scale,
                window=window,
                sinks=sinks,
            )
            for first in range(0, n, num_rows)
        ]
        mixed = parts[0] if len(parts) == 1 else torch.cat(parts)
        return mixed.reshape(n, heads * head_dim)

    def embed(self, matrix: Matrix, ids: torch.Tensor) -> torch.Tensor:
        """Return rows ``ids`` (int32 or int64 ``[n]``) of a matrix as f32 ``[n, columns]``."""
        weights = _stored(matrix)
        if weights is None:
            weights = weights_of(matrix)
        return weights[ids.to(weights.device, torch.int64)].to(torch.float32)

    def add_gated(self, out: torch.Tensor, x: torch.Tensor, logits: torch.Tensor) -> None:
        """Add ``sigmoid(logits[n, 1]) * x[n, m]`` to ``out[n, m]``, in place."""
        out += torch.sigmoid(logits.reshape(-1, 1)) * x


def _attention_of(
    q: torch.Tensor,
    pages: KvPages,
    start_position: int,
    *,
    scale: float,
    window: int,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return what some rows mix of the values that they see: ``[n, heads, head_dim]``."""
    n, heads, head_dim = q.shape
    end = start_position + n
    begin = max(0, start_position - window + 1) if window > 0 else 0
    keys, values = pages.gather(begin, end)
    group = heads // pages.num_kv_heads
    own = torch.arange(start_position, end, device=q.device).unsqueeze(1)
    other = torch.arange(begin, end, device=q.device).unsqueeze(0)
    is_hidden = other > own
    if window > 0:
        is_hidden |= other <= own - window
    grouped = q.view(n, pages.num_kv_heads, group, head_dim)
    scores = torch.einsum("nkgd,tkd->kgnt", grouped, keys) * scale
    scores = scores.masked_fill(is_hidden, -torch.inf)
    if sinks is not None:
        more = sinks.view(pages.num_kv_heads, group, 1, 1).expand(-1, -1, n, -1)
        scores = torch.cat([scores, more], dim=-1)
    shares = torch.softmax(scores, dim=-1)[..., : end - begin]
    return torch.einsum("kgnt,tkd->nkgd", shares, values)


def _stored(matrix: Matrix) -> torch.Tensor | None:
    """Return the numbers ``[rows, columns]`` of a plain tensor as they lie, None for others."""
    plain = PLAIN_TYPES.get(matrix.format)
    if plain is None or not isinstance(matrix.data, torch.Tensor):
        return None
    return matrix.data.view(plain).view(matrix.rows, matrix.columns)


def weights_of(matrix: Matrix) -> torch.Tensor:
    """Return the weights that a matrix stands for, as f32 ``[rows, columns]``."""
    if isinstance(matrix.data, torch.Tensor):
        return unpack_tensor(matrix.format, matrix.data, matrix.rows, matrix.columns)
    return torch.from_numpy(unpack(matrix.format, matrix.data, matrix.rows, matrix.columns))
