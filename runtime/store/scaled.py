"""Matrices published in few bits with one scale for each block of rows and columns.

A weight is its level times the scale of its block, multiplied in f32 and then rounded once to the
wanted format. Of a block in eight bits (e4m3) a table of all 256 weights is made, and looked up for
each byte; blocks in four bits are small, and their levels are multiplied one by one.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ScaledBlocks, TensorEntry
from runtime.store.base import Reads
from runtime.store.not_finite import not_finite
from runtime.store.plain import Bytes, Floats, bf16_of, floats_of

Table = npt.NDArray[np.uint32] | npt.NDArray[np.uint16]

_STRIPE_BYTES = 4 << 20
"""So much of a matrix is read and converted at a time."""
_SLICE_WEIGHTS = 1 << 16
"""So many weights in four bits at a time: what they are multiplied in stays in a core's cache."""
_KINDS = {WeightFormat.F32: np.uint32, WeightFormat.BF16: np.uint16}
_FEWEST_BITS = 4
_LEVEL_OF_ZERO = 8
_NO_NUMBER = 0x7F
"""The byte that stands for no number; the sign is in the bit above."""
_LARGEST_LEVEL = 448.0
_LARGEST_SCALE = float(np.finfo(np.float32).max) / _LARGEST_LEVEL


def e4m3_levels() -> Floats:
    """Return what each of the 256 bytes stands for."""
    codes = np.arange(256)
    exponents, fractions = codes >> 3 & 15, codes & 7
    # The lowest exponent has no leading one, and the same steps as the next.
    sizes = np.where(
        exponents == 0,
        np.ldexp(fractions / 8, -6),
        np.ldexp(1 + fractions / 8, exponents - 7),
    )
    levels = np.where(codes & 128, -sizes, sizes).astype(np.float32)
    levels[codes & _NO_NUMBER == _NO_NUMBER] = np.nan
    return levels


def scaled_pieces(
    files: Reads, entry: TensorEntry, weight_format: WeightFormat
) -> Iterator[memoryview]:
    """Yield a matrix in bf16 or f32, some rows at a time, in their order.

    Raises ``LarderError`` that names the tensor for a weight or a scale that is no number, and for
    a scale that is not above 0.
    """
    blocks = entry.blocks
    assert blocks is not None
    rows, columns = entry.shape
    scales = _read_scales(files, blocks, entry.shape)
    num_rows = max(1, _STRIPE_BYTES // columns // blocks.rows) * blocks.rows
    num_rows = min(num_rows, max(1, _STRIPE_BYTES // columns), rows)
    row_bytes = blocks.row_bytes(columns)
    room = bytearray(num_rows * row_bytes)
    for first_row in range(0, rows, num_rows):
        weights = np.frombuffer(room, np.uint8)[: (rows - first_row) * row_bytes]
        offset_bytes = entry.offset_bytes + first_row * row_bytes
        files.read(entry.file, offset_bytes, [weights.data])
        weights = weights.reshape(-1, row_bytes)
        if blocks.bits == _FEWEST_BITS:
            stripe = _multiplied(weights, columns, scales[first_row:], blocks, weight_format)
        elif ((weights & _NO_NUMBER) == _NO_NUMBER).any():
            raise not_finite(entry)
        else:
            stripe = _widened(weights, first_row, scales, blocks, weight_format)
        yield stripe.reshape(-1).view(np.uint8).data


def _widened(
    weights: Bytes,
    first_row: int,
    scales: Floats,
    blocks: ScaledBlocks,
    weight_format: WeightFormat,
) -> Table:
    """Return the bits of a stripe's weights, which begins at ``first_row`` of its matrix."""
    stripe: Table = np.empty(weights.shape, _KINDS[weight_format])
    end_row, columns = first_row + len(weights), weights.shape[1]
    for number in range(first_row // blocks.rows, -(-end_row // blocks.rows)):
        tables = _tables(scales[number], weight_format)
        begin = max(number * blocks.rows, first_row) - first_row
        end = min((number + 1) * blocks.rows, end_row) - first_row
        for table, left in zip(tables, range(0, columns, blocks.columns), strict=True):
            here = (slice(begin, end), slice(left, left + blocks.columns))
            # No byte is outside the table; without the check the look-up is faster.
            stripe[here] = table.take(weights[here], mode="clip")
    return stripe


def _multiplied(
    weights: Bytes,
    columns: int,
    scales: Floats,
    blocks: ScaledBlocks,
    weight_format: WeightFormat,
) -> Table:
    """Return the bits of a stripe in four bits, whose blocks are parts of one row."""
    stripe: Table = np.empty((len(weights), columns), _KINDS[weight_format])
    num_rows = max(1, _SLICE_WEIGHTS // columns)
    for begin in range(0, len(weights), num_rows):
        here = slice(begin, begin + num_rows)
        packed = weights[here]
        levels = np.empty((len(packed), 2 * packed.shape[1]), np.float32)
        levels[:, ::2] = packed & np.uint8(15)
        levels[:, 1::2] = packed >> np.uint8(4)
        levels -= _LEVEL_OF_ZERO
        own = scales[here][: len(packed)]
        wide = np.repeat(own, blocks.columns, axis=1)[:, :columns]
        stripe[here] = _bits_of(levels[:, :columns] * wide, weight_format)
    return stripe


def _tables(scales: Floats, weight_format: WeightFormat) -> Table:
    """Return for each scale the bits of all 256 weights."""
    with np.errstate(invalid="ignore"):
        return _bits_of(scales[:, None] * _LEVELS, weight_format)


def _bits_of(values: Floats, weight_format: WeightFormat) -> Table:
    """Return the bits of numbers in bf16 or f32."""
    return values.view(np.uint32) if weight_format is WeightFormat.F32 else bf16_of(values)


_LEVELS = e4m3_levels()


def _read_scales(files: Reads, blocks: ScaledBlocks, shape: tuple[int, ...]) -> Floats:
    """Return the scales ``[blocks of rows, blocks of columns]`` of a matrix, all of them usable."""
    entry = blocks.scales
    stored = np.empty(entry.num_bytes, np.uint8)
    files.read(entry.file, entry.offset_bytes, [stored.data])
    scales = floats_of(entry.format, stored)
    if not np.isfinite(scales).all():
        raise not_finite(entry)
    strange = scales[(scales <= 0) | (scales > _LARGEST_SCALE)]
    if strange.size:
        raise LarderError(
            ErrorCode.TENSOR_MISMATCHED,
            file=shown(entry.file),
            tensor=entry.name,
            found=f"{strange[0]:g} in one place",
            expected=f"a number above 0 and up to {_LARGEST_SCALE:.2g} everywhere",
        )
    return scales.reshape(-(-shape[0] // blocks.rows), -(-shape[1] // blocks.columns))
