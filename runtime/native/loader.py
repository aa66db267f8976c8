"""The one way to the C++ extension, which may be missing."""

# ruff: noqa: A002, PLR0913, PLR0917
# Calls cross the boundary as plain numbers: a structure for each would cost more than the call.

import dataclasses
import functools
import importlib
from typing import Protocol, cast

MatrixNumbers = tuple[int, int, int, int, int]
"""Address, number of the format, rows, columns, and the address of the bias or 0."""


class NativeBlock(Protocol):
    """An attention block of the extension; it holds addresses and keeps nothing alive."""

    def run(
        self, x: int, n: int, keys: list[int], values: list[int], start_position: int, out: int, /
    ) -> None:
        """Rows ``x[n, hidden]`` into ``out[n, hidden]``; ``ValueError`` for positions it lacks."""


class NativeModule(Protocol):
    """What the extension offers: addresses and counts in, nothing kept.

    Callers answer for every address: contiguous f32 unless said otherwise, valid during the call.
    """

    GROUP_SIZE: int
    ROW_BLOCK: int
    Q8_GROUP_BYTES: int
    Q4_GROUP_BYTES: int
    MXFP4_GROUP_BYTES: int
    Q4A_GROUP_BYTES: int
    Q6_GROUP_BYTES: int
    Q3_GROUP_BYTES: int
    Q2_GROUP_BYTES: int
    """With the head of their block, as of ``Q4A``."""
    Q4K_SPAN_BYTES: int
    Q5K_SPAN_BYTES: int
    Q6K_SPAN_BYTES: int
    Q3K_SPAN_BYTES: int
    Q2K_SPAN_BYTES: int

    def attention_block(
        self,
        hidden: int,
        shape: tuple[int, int, int, int],
        q: MatrixNumbers,
        k: MatrixNumbers,
        v: MatrixNumbers,
        o: MatrixNumbers,
        norms: tuple[int, int, float],
        tables: tuple[int, int, int, int],
        scale: float,
        window: int,
        sinks: int,
        /,
    ) -> NativeBlock:
        """Make a block.

        ``shape`` is heads, KV heads, width of a head, tokens of a page; ``norms`` the weights of
        queries and keys or 0, and the epsilon; ``tables`` cosines, sines (0: none), positions,
        angles.
        """

    def linear(
        self,
        x: int,
        n: int,
        weights: int,
        format: int,
        rows: int,
        columns: int,
        bias: int,
        out: int,
        /,
    ) -> None:
        """``out[n, rows] = x[n, columns] . weights + bias``; bias 0 means none."""

    def gated(
        self,
        x: int,
        n: int,
        gate: int,
        gate_format: int,
        up: int,
        up_format: int,
        down: int,
        down_format: int,
        hidden: int,
        width: int,
        out: int,
        activation: int,
        alpha: float,
        limit: float,
        /,
    ) -> None:
        """Add a gated feed-forward block's results to ``out[n, hidden]``."""

    def experts(
        self,
        x: int,
        n: int,
        formats: tuple[int, int, int],
        hidden: int,
        width: int,
        offsets: tuple[int, int, int],
        numbers: list[int],
        slots: list[int],
        ids: int,
        weights: int,
        k: int,
        out: int,
        activation: int,
        alpha: float,
        limit: float,
        biases: tuple[int, int, int],
        bias_rows: list[int],
        /,
    ) -> None:
        """Add the chosen experts' weighted results to ``out[n, hidden]``.

        Formats and offsets are those of gate, up and down. Without ``bias_rows`` there are no
        biases; else each expert's row of all three.
        """

    def attention(
        self,
        q: int,
        n: int,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_tokens: int,
        keys: list[int],
        values: list[int],
        start_position: int,
        scale: float,
        window: int,
        sinks: int,
        out: int,
        /,
    ) -> None:
        """Causal attention into ``out[n, num_heads * head_dim]``; sinks 0 means none."""

    def store_kv(
        self,
        new_keys: int,
        new_values: int,
        n: int,
        num_kv_heads: int,
        head_dim: int,
        page_tokens: int,
        keys: list[int],
        values: list[int],
        start_position: int,
        /,
    ) -> None:
        """Copy new rows into the pages."""

    def embed(
        self,
        weights: int,
        format: int,
        rows: int,
        columns: int,
        ids: int,
        n: int,
        out: int,
        /,
    ) -> None:
        """Gather rows by int64 ids; ``IndexError`` for an id that is not there."""

    def rms_norm(self, x: int, n: int, width: int, weight: int, eps: float, out: int, /) -> None:
        """Root-mean-square norm of each row."""

    def rope(
        self,
        x: int,
        n: int,
        heads: int,
        head_dim: int,
        num_angles: int,
        cosines: int,
        sines: int,
        /,
    ) -> None:
        """Turn heads in place; the tables start at the first row's position."""

    def route(
        self,
        logits: int,
        n: int,
        num_experts: int,
        k: int,
        is_normalised: bool,
        ids: int,
        weights: int,
        /,
    ) -> None:
        """Choose experts into int32 ids and f32 weights."""

    def add_gated(self, out: int, x: int, logits: int, n: int, width: int, /) -> None:
        """Add ``sigmoid(logits) * x`` row by row."""

    def read_bandwidth(
        self, data: int, num_bytes: int, num_threads: int, chunk_bytes: int, /
    ) -> float:
        """Read memory once with some threads; returns bytes per second."""

    def repack(
        self, kind: int, format: int, stored: int, rows: int, columns: int, out: int, /
    ) -> bool:
        """Rows of a kind of GGUF files into a grouped matrix; False where that is not known here.

        False too for scales that the format cannot hold; what lies in ``out`` is nothing then.
        """

    def instruction_set(self) -> str:
        """``avx512``, ``avx2`` or ``portable``."""

    def select_instruction_set(self, name: str, /) -> bool:
        """Use another one; False, and no change, where this processor lacks it."""

    def num_threads(self) -> int:
        """Threads that share a call's work, the caller among them."""

    def set_num_threads(self, count: int, /) -> None:
        """Set that number, at least 1."""


@dataclasses.dataclass(frozen=True, slots=True)
class NativeOutcome:
    """The extension, or why there is none."""

    module: NativeModule | None
    reason: str = ""


@functools.cache
def native_outcome() -> NativeOutcome:
    """Import the extension the first time; what came of it is kept."""
    try:
        module = importlib.import_module("runtime.native._native")
    except ImportError as error:
        return NativeOutcome(None, str(error))
    return NativeOutcome(cast("NativeModule", module))


def load_native() -> NativeModule | None:
    """Return the extension, or None where it was not built; ``native_outcome`` says why."""
    return native_outcome().module


def read_bandwidth(
    address: int, num_bytes: int, num_threads: int, chunk_bytes: int = 1 << 20
) -> float | None:
    """Return the bytes per second at which threads read memory, None without the extension."""
    module = load_native()
    return (
        None
        if module is None
        else module.read_bandwidth(address, num_bytes, num_threads, chunk_bytes)
    )
