"""Kernels of a model whose dense part lies on a device and whose experts lie here and there."""

import contextlib
import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from runtime.device.base import Device
from runtime.kernels.base import PLAIN_STYLE, ExpertStyle, HeadRows, Kernels, RopeTables
from runtime.kernels.dispatch import choose_device_kernels
from runtime.kernels.fixed import FixedPlace
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import CPU, Matrix, Slot
from runtime.kernels.passing import PassingExperts
from runtime.spec.blocks import SILU, Activation, Routing
from runtime.spec.tensors import ExpertLayout
from runtime.telemetry.recorder import Counters

Pairs = Sequence[tuple[int, Slot]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """What the processor needs of a computation on the device, in RAM."""

    x: torch.Tensor
    layout: ExpertLayout
    ids: torch.Tensor
    weights: torch.Tensor
    style: ExpertStyle


class TieredKernels:
    """Launches on the device everything but the experts that lie in RAM, which the processor does.

    A device that shares its memory with the processor takes the processor's own kernels, additions
    to a row follow the order of the experts wherever they are computed, and the bits are those of
    the processor alone. Any other begins with its own experts, and the processor computes the
    others meanwhile: what all of them give for a token goes over at once. Of a prompt it is what
    each gives for the rows that chose it, and experts with many rows pass to the card themselves.

    Threads: one caller at a time.
    """

    def __init__(
        self,
        host: Kernels,
        device: Device,
        counters: Counters,
        clock: Callable[[], float] = time.perf_counter,
        passing: PassingExperts | None = None,
    ) -> None:
        self._host = host
        self._passing = passing
        if passing is None and not device.is_simulated:
            self._passing = PassingExperts(device, clock)
        self._device = device
        self._shares_memory = device.is_simulated
        self._kernels = host if device.is_simulated else choose_device_kernels(device.torch_device)
        self._counters = counters
        self._clock = clock
        self._place: FixedPlace | None = None

    @property
    def name(self) -> str:
        """The kernels of the device and those of the processor."""
        own = "" if self._shares_memory else f" {self._kernels.name}"
        return f"{self._device.device}{own}+{self._host.name}"

    @property
    def is_row_invariant(self) -> bool:
        """Whether a row's bits are independent of the rows that share its call."""
        return self._kernels.is_row_invariant

    def _send_row(self, sent: "_Sent", run: Pairs, out: torch.Tensor) -> None:
        """Compute all experts of one token together, and add their sum on the device."""
        started_s = self._clock()
        part = torch.zeros_like(sent.x)
        self._host.experts(sent.x, sent.layout, run, sent.ids, sent.weights, part, sent.style)
        if self._passing is not None:
            self._passing.note(1, (self._clock() - started_s) / len(run))
        there = self._device.send(part)
        self._device.launch(lambda: out.add_(there))

    @contextlib.contextmanager
    def at(self, place: FixedPlace) -> Iterator[None]:
        """Let one token's positional work take its place from a tensor; positions are not read."""
        self._place = place
        try:
            yield
        finally:
            self._place = None

    def experts(
        self,
        x: torch.Tensor,
        layout: ExpertLayout,
        experts: Pairs,
        ids: torch.Tensor,
        weights: torch.Tensor,
        out: torch.Tensor,
        style: ExpertStyle = PLAIN_STYLE,
    ) -> None:
        """Add the weighted results of the given experts to ``out``, each where it lies."""
        runs = _runs_of(experts, in_order=self._shares_memory)
        here = None
        if not self._shares_memory and any(is_here for is_here, _ in runs):
            here = _Sent(x.cpu(), layout, ids.cpu(), weights.cpu(), style.cpu())
        passing = self._passing
        in_ram = [pair for is_here, run in runs if is_here for pair in run]
        passes = frozenset() if passing is None else passing.choose(in_ram, ids)

        def on_device(run: Pairs) -> None:
            self._device.launch(
                functools.partial(self._kernels.experts, x, layout, run, ids, weights, out, style)
            )

        def on_host(run: Pairs) -> None:
            started_s = self._clock()
            if here is None:
                self._host.experts(x, layout, run, ids, weights, out, style)
            else:
                self._send_experts(here, run, out)
            self._counters.compute_s += self._clock() - started_s

        try:
            for is_here, run in runs:
                if not is_here:
                    on_device(run)
                    continue
                for is_passing, part in itertools.groupby(run, lambda pair: pair[0] in passes):
                    if not is_passing or passing is None:
                        on_host(list(part))
                        continue
                    for number, _ in part:
                        on_device([(number, passing.take())])
        finally:
            if passing is not None:
                passing.end()
        if here is None and any(is_here for is_here, _ in runs):
            # What the processor has added lies there already, and takes the link as it would.
            self._device.send(out)

    def _send_experts(self, sent: "_Sent", run: Pairs, out: torch.Tensor) -> None:
        """Compute experts here and add on the device what they give."""
        if len(sent.x) == 1:
            self._send_row(sent, run, out)
            return
        for number, slot in run:
            rows = (sent.ids == number).any(dim=1).nonzero().squeeze(1)
            if not len(rows):
                continue
            started_s = self._clock()
            part = torch.zeros(len(rows), out.shape[1])
            self._host.experts(
                sent.x[rows].contiguous(),
                sent.layout,
                [(number, slot)],
                sent.ids[rows].contiguous(),
                sent.weights[rows].contiguous(),
                part,
                sent.style,
            )
            if self._passing is not None:
                self._passing.note(len(rows), self._clock() - started_s)
            there, places = self._device.send(part), rows.to(out.device)
            self._device.launch(functools.partial(out.index_add_, 0, places, there))

    def _here(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the device in RAM, where the processor can read it."""
        return x if self._shares_memory else x.cpu()

    def linear(
        self, x: torch.Tensor, matrix: Matrix, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``x[n, columns]`` times the matrix transposed, plus the bias: ``[n, rows]``."""
        return self._device.launch(lambda: self._kernels.linear(x, matrix, bias))

    def gated(
        self,
        x: torch.Tensor,
        gate: Matrix,
        up: Matrix,
        down: Matrix,
        activation: Activation = SILU,
    ) -> torch.Tensor:
        """Return the gated feed-forward, ``down(silu(gate(x)) * up(x))``: ``[n, down.rows]``."""
        return self._device.launch(lambda: self._kernels.gated(x, gate, up, down, activation))

    def heads_linear(self, x: torch.Tensor, matrix: Matrix, rows: HeadRows) -> torch.Tensor:
        """Return for each head its product with its own rows of a matrix."""
        return self._device.launch(lambda: self._kernels.heads_linear(x, matrix, rows))

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Return ``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimension."""
        return self._device.launch(lambda: self._kernels.rms_norm(x, weight, eps))

    def layer_norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Return ``(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`` over the last dimension."""
        return self._device.launch(lambda: self._kernels.layer_norm(x, weight, bias, eps))

    def rope(self, x: torch.Tensor, start_position: int, tables: RopeTables) -> None:
        """Turn ``x[n, heads, head_dim]`` in place; row ``i`` is at ``start_position + i``."""
        place = self._place
        if place is not None:
            self._device.launch(lambda: place.rope(self._kernels, x, tables))
            return
        self._device.launch(lambda: self._kernels.rope(x, start_position, tables))

    def route(
        self, logits: torch.Tensor, top_k: int, *, is_normalised: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose ``top_k`` experts of ``logits[n, num_experts]`` for each row."""
        return self._device.launch(
            lambda: self._kernels.route(logits, top_k, is_normalised=is_normalised)
        )

    def choose(
        self, logits: torch.Tensor, routing: Routing, correction: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose experts by any routing; results are as those of ``route``."""
        return self._device.launch(lambda: self._kernels.choose(logits, routing, correction))

    def store_kv(
        self, pages: KvPages, start_position: int, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Write ``keys`` and ``values`` ``[n, num_kv_heads, head_dim]`` from a position on."""
        if pages.device == CPU:
            self._host.store_kv(pages, start_position, self._here(keys), self._here(values))
            return
        place = self._place
        if place is not None:
            self._device.launch(lambda: place.store(pages, keys, values))
            return
        self._device.launch(lambda: self._kernels.store_kv(pages, start_position, keys, values))

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

        The processor computes it where keys and values lie in RAM: a token's row goes there and
        back instead of all that it sees.
        """
        if pages.device == CPU:
            own, here = self._here(q), None if sinks is None else self._here(sinks)
            started_s = self._clock()
            mixed = self._host.attention(
                own, pages, start_position, scale=scale, window=window, sinks=here
            )
            self._counters.compute_s += self._clock() - started_s
            return self._device.send(mixed)
        place = self._place
        if place is not None:
            return self._device.launch(
                lambda: place.attention(q, pages, scale=scale, window=window, sinks=sinks)
            )
        return self._device.launch(
            lambda: self._kernels.attention(
                q, pages, start_position, scale=scale, window=window, sinks=sinks
            )
        )

    def embed(self, matrix: Matrix, ids: torch.Tensor) -> torch.Tensor:
        """Return rows ``ids`` (int32 or int64 ``[n]``) of a matrix as f32 ``[n, columns]``."""
        return self._device.launch(lambda: self._kernels.embed(matrix, ids))

    def add_gated(self, out: torch.Tensor, x: torch.Tensor, logits: torch.Tensor) -> None:
        """Add ``sigmoid(logits[n, 1]) * x[n, m]`` to ``out[n, m]``, in place."""
        self._device.launch(lambda: self._kernels.add_gated(out, x, logits))


def _runs_of(experts: Pairs, *, in_order: bool) -> list[tuple[bool, list[tuple[int, Slot]]]]:
    """Return runs of experts, and whether each lies here; else those of the device come first.

    Then it is busy while the processor computes the others.
    """
    pairs = experts if in_order else sorted(experts, key=lambda pair: pair[1].device == CPU)
    return [
        (is_here, list(run))
        for is_here, run in itertools.groupby(pairs, lambda pair: pair[1].device == CPU)
    ]
