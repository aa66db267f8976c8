"""Matrices of GGUF files as kernels take them, some rows at a time.

Where a format of kernels holds a kind exactly, its bits are moved. Other kinds are rounded to
levels of eight bits with scales anew; docs/formats.md says by how much.
"""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from runtime.native.formats import FORMAT_CODES
from runtime.native.loader import load_native
from runtime.protocol.values import WeightFormat
from runtime.spec.gguf import EXACT_KINDS, HOME, PLAIN, GgufKind, GgufRows, Join
from runtime.spec.tensors import GROUP_SIZE, ROW_BLOCK, TensorEntry, matrix_bytes
from runtime.store.base import LendingReads, Reads
from runtime.store.bounce import MOST_LENT_BYTES
from runtime.store.direct import address_of
from runtime.store.gguf_blocks import Decoded, decode, dequantise
from runtime.store.not_finite import not_finite
from runtime.store.plain import Bytes, Floats, bf16_of
from runtime.store.records import SPAN_RECORDS, fp4_record, interleaved

_STRIPE_WEIGHTS = 1 << 18
"""So many weights are put right at a time: what that takes stays near the cores."""
_READ_WEIGHTS = 1 << 21
"""So many where the extension does it, which needs no room between: fewer and larger reads."""
_MOST_Q8 = 127
REPACKED = {
    GgufKind.Q4_0: WeightFormat.Q4_G32,
    GgufKind.Q8_0: WeightFormat.Q8_G32,
    GgufKind.MXFP4: WeightFormat.MXFP4,
    GgufKind.Q4_K: WeightFormat.Q4K_G32,
    GgufKind.Q5_K: WeightFormat.Q5K_G32,
    GgufKind.Q6_K: WeightFormat.Q6K_G16,
    GgufKind.Q3_K: WeightFormat.Q3K_G16,
    GgufKind.Q2_K: WeightFormat.Q2K_G16,
}
"""What the extension puts right by itself, to the same bits: the kinds of most files."""
_LARGEST_F16 = np.float32(np.finfo(np.float16).max)


def gguf_pieces(
    files: Reads, entry: TensorEntry, weight_format: WeightFormat
) -> Iterator[memoryview]:
    """Yield a matrix in a format, some rows at a time, in their order.

    Raises ``LarderError`` that names the tensor for a scale that is no number.
    """
    rows = entry.gguf
    assert rows is not None
    if rows.join is not None:
        yield _bytes_of(_plain(_joined(files, entry, rows), weight_format)).data
        return
    # Of a vector with heads each number is a row of its own.
    *outer, columns = (*entry.shape, 1) if len(entry.shape) == 1 else entry.shape
    count = math.prod(outer)
    row_bytes = rows.kind.row_bytes(columns)
    unit = math.lcm(ROW_BLOCK, count // rows.heads) if rows.heads else ROW_BLOCK
    is_native = load_native() is not None and REPACKED.get(rows.kind) is weight_format
    at_once = _READ_WEIGHTS if is_native else _STRIPE_WEIGHTS
    num_rows = max(1, at_once // columns // unit) * unit
    for first in range(0, count, num_rows):
        stored = np.empty((min(num_rows, count - first), row_bytes), np.uint8)
        begin = entry.offset_bytes + first * row_bytes
        files.read(entry.file, begin, [stored.reshape(-1).data])
        if rows.heads:
            stored = _apart(stored, len(stored) * rows.heads // count)
        yield _bytes_of(_converted(entry, rows.kind, stored, weight_format)).data


def is_repacked(entry: TensorEntry, weight_format: WeightFormat) -> bool:
    """Whether the extension puts a whole matrix right by itself, straight from what was read."""
    rows = entry.gguf
    return (
        rows is not None
        and REPACKED.get(rows.kind) is weight_format
        and rows.join is None
        and not rows.heads
        and len(entry.shape) == len(("rows", "columns"))
        and rows.kind.row_bytes(entry.shape[1]) * ROW_BLOCK <= MOST_LENT_BYTES
        and load_native() is not None
    )


def repack_into(
    files: LendingReads,
    entry: TensorEntry,
    weight_format: WeightFormat,
    target: memoryview,
    wanted: range | None = None,
) -> bool:
    """Fill the beginning of ``target`` with a matrix straight from where it was read.

    With ``wanted`` those rows alone are put in their places; they begin with a multiple of
    ``ROW_BLOCK``. False, and any bytes in ``target``, for what the extension does not do by itself,
    or where it finds a scale that is no number.
    """
    rows, native = entry.gguf, load_native()
    if rows is None or native is None or not is_repacked(entry, weight_format):
        return False
    count, columns = entry.shape
    if target.nbytes < matrix_bytes(weight_format, count, columns):
        raise ValueError(f"{target.nbytes} bytes for {entry.name[:80]}")
    row_bytes = rows.kind.row_bytes(columns)
    at_once = MOST_LENT_BYTES // row_bytes // ROW_BLOCK * ROW_BLOCK
    number, code, begin = rows.kind.value[0], FORMAT_CODES[weight_format], address_of(target)
    chosen = range(count) if wanted is None else wanted
    for first in chosen[::at_once]:
        num_rows = min(at_once, chosen.stop - first)
        place = begin + matrix_bytes(weight_format, first, columns)
        offset_bytes = entry.offset_bytes + first * row_bytes
        with files.lent(entry.file, offset_bytes, num_rows * row_bytes) as stored:
            is_right = native.repack(number, code, address_of(stored), num_rows, columns, place)
        if not is_right:
            return False
    return True


def _apart(rows: Bytes, heads: int) -> Bytes:
    """Return the rows of each head with its two halves behind each other, which alternate."""
    pairs = rows.reshape(heads, -1, 2, rows.shape[1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def _bytes_of(array: npt.NDArray[np.generic]) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _converted(
    entry: TensorEntry, kind: GgufKind, stored: Bytes, weight_format: WeightFormat
) -> npt.NDArray[np.generic]:
    """Return rows as stored in a format."""
    if PLAIN.get(kind) is weight_format:
        return stored
    repacked = _repacked(kind, stored, weight_format)
    if repacked is not None:
        return repacked
    if weight_format is WeightFormat.MXFP4:
        return _fp4_record(entry, stored)
    with np.errstate(invalid="ignore"):
        decoded = decode(kind, stored.reshape(-1, kind.block_bytes))
        is_finite = np.isfinite(decoded.scales).all() and (
            decoded.leasts is None or np.isfinite(decoded.leasts).all()
        )
    if not is_finite:
        raise not_finite(entry)
    if weight_format in SPAN_RECORDS:
        blocks = stored.reshape(len(stored), -1, kind.block_bytes)
        return SPAN_RECORDS[weight_format](blocks)
    match weight_format:
        case WeightFormat.Q4_G32:
            return _moved_pairs(kind, stored)
        case WeightFormat.Q8_G32 if kind in EXACT_KINDS and HOME[kind] is weight_format:
            return _moved_levels(decoded, len(stored))
        case WeightFormat.Q8_G32:
            return _rounded(entry, decoded.weights().reshape(len(stored), -1))
    return _plain(decoded.weights().reshape(len(stored), -1), weight_format)


def _repacked(kind: GgufKind, stored: Bytes, weight_format: WeightFormat) -> Bytes | None:
    """Return rows that the extension put right; None where it does not, or finds them faulty."""
    native = load_native()
    if native is None or REPACKED.get(kind) is not weight_format:
        return None
    columns = stored.shape[1] // kind.block_bytes * kind.block_columns
    stored = np.ascontiguousarray(stored)
    room = np.empty(matrix_bytes(weight_format, len(stored), columns), np.uint8)
    number, code = kind.value[0], FORMAT_CODES[weight_format]
    shape = (len(stored), columns)
    is_right = native.repack(number, code, stored.ctypes.data, *shape, room.ctypes.data)
    return room if is_right else None


def _plain(values: Floats, weight_format: WeightFormat) -> npt.NDArray[np.generic]:
    """Return numbers in a plain format, each rounded once; ties go to even."""
    match weight_format:
        case WeightFormat.F32:
            return values
        case WeightFormat.F16:
            with np.errstate(over="ignore"):
                return values.astype(np.float16)
    assert weight_format is WeightFormat.BF16
    return bf16_of(np.ascontiguousarray(values))


def _moved_pairs(kind: GgufKind, stored: Bytes) -> Bytes:
    """Return levels of four bits with their scales, which lie alike in file and record."""
    assert kind is GgufKind.Q4_0
    blocks = stored.reshape(len(stored), -1, kind.block_bytes)
    return interleaved([blocks[..., :2]], blocks[..., 2:])


def _fp4_record(entry: TensorEntry, stored: Bytes) -> Bytes:
    """Return levels of MXFP4 with their exponents, which lie alike in file and record."""
    blocks = stored.reshape(len(stored), -1, GgufKind.MXFP4.block_bytes)
    try:
        return fp4_record(blocks[..., 1:], blocks[..., 0])
    except ValueError as cause:
        raise not_finite(entry, str(cause)) from cause


def _moved_levels(decoded: Decoded, rows: int) -> Bytes:
    """Return levels with scales that f16 holds exactly."""
    levels = decoded.levels.view(np.uint8).reshape(rows, -1, GROUP_SIZE)
    scales = decoded.scales.astype(np.float16).view(np.uint8).reshape(rows, -1, 2)
    return interleaved([scales], levels)


def _rounded(entry: TensorEntry, values: Floats) -> Bytes:
    """Return weights rounded to levels of eight bits, at most half a level away each."""
    rows = len(values)
    groups = values.reshape(rows, -1, GROUP_SIZE)
    # Adding nothing makes one zero of both.
    largest = np.maximum(groups.max(axis=2), -groups.min(axis=2)) + np.float32(0)
    if not (largest <= _MOST_Q8 * _LARGEST_F16).all():
        raise not_finite(entry)
    scales = (largest * np.float32(1 / _MOST_Q8)).astype(np.float16)
    # Where f16 is coarse, a scale that was rounded down would cut the largest weights off.
    is_short = scales.astype(np.float32) * np.float32(_MOST_Q8 + 0.25) < largest
    np.nextafter(scales, np.float16(np.inf), out=scales, where=is_short)
    used = scales.astype(np.float32)
    inverse = np.divide(np.float32(1), used, out=np.zeros_like(used), where=used > 0)
    levels = groups * inverse[..., None]
    np.rint(levels, out=levels)
    np.clip(levels, -_MOST_Q8, _MOST_Q8, out=levels)
    return interleaved(
        [scales.view(np.uint8).reshape(rows, -1, 2)], levels.astype(np.int8).view(np.uint8)
    )


def _joined(files: Reads, entry: TensorEntry, rows: GgufRows) -> Floats:
    """Return a matrix that is made of two."""
    second = rows.second
    assert second is not None
    assert second.gguf is not None
    first = _whole(files, entry.file, entry.offset_bytes, rows.kind, _first_shape(entry, rows))
    other = _whole(files, second.file, second.offset_bytes, second.gguf.kind, second.shape)
    if rows.join is Join.ALTERNATING:
        return np.stack([first, other], axis=2).reshape(entry.shape)
    columns = entry.shape[1]
    keys = first.reshape(rows.groups, columns, -1).swapaxes(1, 2)
    values = other.reshape(rows.groups, -1, columns)
    return np.concatenate([keys, values], axis=1).reshape(entry.shape)


def _first_shape(entry: TensorEntry, rows: GgufRows) -> tuple[int, ...]:
    """Return the shape in which the first of two joined matrices lies."""
    second = rows.second
    assert second is not None
    if rows.join is Join.ALTERNATING:
        return second.shape
    key_rows = entry.shape[0] // rows.groups - math.prod(second.shape[:-1]) // rows.groups
    return (rows.groups * entry.shape[1], key_rows)


def _whole(
    files: Reads, file: str, offset_bytes: int, kind: GgufKind, shape: tuple[int, ...]
) -> Floats:
    """Return a whole matrix in f32."""
    stored = np.empty((math.prod(shape[:-1]), kind.row_bytes(shape[-1])), np.uint8)
    files.read(file, offset_bytes, [stored.reshape(-1).data])
    return dequantise(kind, stored)
