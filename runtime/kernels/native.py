"""Kernels in native code: addresses of tensors handed to the extension."""

from collections.abc import Sequence

import torch

from runtime.kernels import composition
from runtime.kernels.base import PLAIN_STYLE, ExpertStyle, HeadRows, RopeTables
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.native_arguments import (
    ACTIVATION_CODES,
    ExpertNumbers,
    address_of,
    biases_of,
)
from runtime.native.formats import FORMAT_CODES
from runtime.native.loader import NativeModule
from runtime.spec.blocks import SILU, Activation, Routing
from runtime.spec.tensors import ExpertLayout


class NativeKernels:
    """The extension's kernels; every row's bits are independent of the call around it.

    Threads: one caller at a time. Calls that take long give the interpreter lock back.
    """

    is_row_invariant = True

    def __init__(self, module: NativeModule) -> None:
        self._module = module
        self._numbers: dict[int, ExpertNumbers] = {}

    @property
    def module(self) -> NativeModule:
        """The extension."""
        return self._module

    @property
    def name(self) -> str:
        """``native-`` and the instruction set."""
        return f"native-{self._module.instruction_set()}"

    def linear(
        self, x: torch.Tensor, matrix: Matrix, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``x[n, columns]`` times the matrix transposed, plus the bias: ``[n, rows]``."""
        n, columns = x.shape
        if columns != matrix.columns:
            raise ValueError(f"{columns} columns for a matrix of {matrix.columns}")
        out = torch.empty(n, matrix.rows)
        self._module.linear(
            address_of(x),
            n,
            matrix.address,
            FORMAT_CODES[matrix.format],
            matrix.rows,
            matrix.columns,
            0 if bias is None else address_of(bias),
            out.data_ptr(),
        )
        return out

    def gated(
        self,
        x: torch.Tensor,
        gate: Matrix,
        up: Matrix,
        down: Matrix,
        activation: Activation = SILU,
    ) -> torch.Tensor:
        """Return the gated feed-forward, ``down(silu(gate(x)) * up(x))``: ``[n, down.rows]``."""
        n, columns = x.shape
        if not columns == gate.columns == up.columns == down.rows:
            raise ValueError(f"{columns} columns for a block of {gate.columns}")
        if not gate.rows == up.rows == down.columns:
            raise ValueError(f"widths {gate.rows}, {up.rows} and {down.columns} in one block")
        out = torch.zeros(n, down.rows)
        self._module.gated(
            address_of(x),
            n,
            gate.address,
            FORMAT_CODES[gate.format],
            up.address,
            FORMAT_CODES[up.format],
            down.address,
            FORMAT_CODES[down.format],
            down.rows,
            gate.rows,
            out.data_ptr(),
            ACTIVATION_CODES[activation.kind],
            activation.alpha,
            activation.limit,
        )
        return out

    def heads_linear(self, x: torch.Tensor, matrix: Matrix, rows: HeadRows) -> torch.Tensor:
        """Return for each head its product with its own rows of a matrix."""
        return composition.heads_linear(self, x, matrix, rows)

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
        numbers = self._numbers.get(id(layout))
        if numbers is None or numbers.layout is not layout:
            numbers = self._numbers[id(layout)] = ExpertNumbers.of(layout)
        hidden, width = numbers.hidden, numbers.width
        n, k = ids.shape
        if x.shape != (n, hidden) or out.shape != (n, hidden) or weights.shape != (n, k):
            raise ValueError(f"x {x.shape}, out {out.shape}, ids {ids.shape}, hidden {hidden}")
        if ids.dtype is not torch.int32 or not ids.is_contiguous():
            raise ValueError("ids are contiguous int32")
        self._module.experts(
            address_of(x),
            n,
            numbers.formats,
            hidden,
            width,
            numbers.offsets,
            [number for number, _ in experts],
            [slot.address for _, slot in experts],
            ids.data_ptr(),
            address_of(weights),
            k,
            address_of(out),
            ACTIVATION_CODES[style.activation.kind],
            style.activation.alpha,
            style.activation.limit,
            *biases_of(style, experts, hidden, width),
        )

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Return ``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimension."""
        width = x.shape[-1]
        if weight.shape != (width,):
            raise ValueError(f"{weight.shape} weights for {width} channels")
        out = torch.empty_like(x)
        self._module.rms_norm(
            address_of(x), x.numel() // width, width, address_of(weight), eps, out.data_ptr()
        )
        return out

    def layer_norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Return ``(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`` over the last dimension."""
        return composition.layer_norm(x, weight, bias, eps)

    def rope(self, x: torch.Tensor, start_position: int, tables: RopeTables) -> None:
        """Turn ``x[n, heads, head_dim]`` in place; row ``i`` is at ``start_position + i``."""
        n, heads, head_dim = x.shape
        num_positions, num_angles = tables.cosines.shape
        if start_position < 0 or start_position + n > num_positions or 2 * num_angles > head_dim:
            raise ValueError(f"positions from {start_position} in tables of {num_positions}")
        if tables.is_interleaved:
            composition.rope_interleaved(x, start_position, tables)
            return
        skip = 4 * num_angles * start_position
        cosines, sines = address_of(tables.cosines) + skip, address_of(tables.sines) + skip
        self._module.rope(address_of(x), n, heads, head_dim, num_angles, cosines, sines)

    def route(
        self, logits: torch.Tensor, top_k: int, *, is_normalised: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose ``top_k`` experts of ``logits[n, num_experts]`` for each row."""
        n, num_experts = logits.shape
        ids = torch.empty(n, top_k, dtype=torch.int32)
        weights = torch.empty(n, top_k)
        self._module.route(
            address_of(logits),
            n,
            num_experts,
            top_k,
            is_normalised,
            ids.data_ptr(),
            weights.data_ptr(),
        )
        return ids, weights

    def choose(
        self, logits: torch.Tensor, routing: Routing, correction: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose experts by any routing; results are as those of ``route``."""
        return composition.choose(logits, routing, correction)

    def store_kv(
        self, pages: KvPages, start_position: int, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Write ``keys`` and ``values`` ``[n, num_kv_heads, head_dim]`` from a position on."""
        if keys.shape != values.shape or keys.shape[1:] != (pages.num_kv_heads, pages.head_dim):
            raise ValueError(f"keys {keys.shape} and values {values.shape}")
        self._module.store_kv(
            address_of(keys),
            address_of(values),
            keys.shape[0],
            pages.num_kv_heads,
            pages.head_dim,
            pages.page_tokens,
            pages.key_addresses,
            pages.value_addresses,
            start_position,
        )

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
        if head_dim != pages.head_dim:
            raise ValueError(f"heads of {head_dim} for pages of {pages.head_dim}")
        if sinks is not None and sinks.shape != (heads,):
            raise ValueError(f"{sinks.shape} sinks for {heads} heads")
        out = torch.empty(n, heads * head_dim)
        self._module.attention(
            address_of(q),
            n,
            heads,
            pages.num_kv_heads,
            head_dim,
            pages.page_tokens,
            pages.key_addresses,
            pages.value_addresses,
            start_position,
            scale,
            window,
            0 if sinks is None else address_of(sinks),
            out.data_ptr(),
        )
        return out

    def embed(self, matrix: Matrix, ids: torch.Tensor) -> torch.Tensor:
        """Return rows ``ids`` (int32 or int64 ``[n]``) of a matrix as f32 ``[n, columns]``."""
        wanted = ids.to(torch.int64).contiguous()
        out = torch.empty(len(wanted), matrix.columns)
        self._module.embed(
            matrix.address,
            FORMAT_CODES[matrix.format],
            matrix.rows,
            matrix.columns,
            wanted.data_ptr(),
            len(wanted),
            out.data_ptr(),
        )
        return out

    def add_gated(self, out: torch.Tensor, x: torch.Tensor, logits: torch.Tensor) -> None:
        """Add ``sigmoid(logits[n, 1]) * x[n, m]`` to ``out[n, m]``, in place."""
        n, width = x.shape
        if out.shape != x.shape or logits.numel() != n:
            raise ValueError(f"out {out.shape}, x {x.shape}, logits {logits.shape}")
        self._module.add_gated(address_of(out), address_of(x), address_of(logits), n, width)
