"""The weight formats as arrays: what packing and unpacking define, byte for byte.

The grouped formats cut a matrix into blocks of eight rows by groups of 32 columns, padded with
zeros; see docs/formats.md for the drawing.
"""

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from runtime.kernels.affine import pack_affine_groups, unpack_affine
from runtime.kernels.fp4 import LEVELS, fp4_scales, pack_fp4_groups
from runtime.kernels.half_spans import pack_half_spans, unpack_half_spans
from runtime.kernels.quads import Bytes, Floats, halves, in_rows, paired
from runtime.kernels.small_bits import pack_small_groups, unpack_small
from runtime.kernels.spans import pack_spans, unpack_spans
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import GROUP_SIZE, QUAD, ROW_BLOCK, STORED_BITS, matrix_bytes

_Q8_MAX = 127
_Q4_MIN, _Q4_MAX = -8, 7
_Q4_ENDS = (-9.0, -8.4, -8.0, -7.6, -7.2, 6.4, 6.8, 7.2, 7.7)
"""Levels, between the outermost ones, at which the largest weight of a group is tried."""
_LEAST_LARGEST = 2.0**-26
"""A group whose weights are all smaller has no scale above zero."""
_LEAST_COUNT = 1e-6
"""Of the column that counts most."""
_SLICE_WEIGHTS = 1 << 16
"""Weights packed at a time: their work arrays stay in a core's cache."""


def pack(weight_format: WeightFormat, array: Floats, importance: Floats | None = None) -> Bytes:
    """Return the bytes of a matrix ``[rows, columns]`` in a format.

    ``importance`` is how much the error of each column counts, at least 0; formats of six bits and
    fewer heed it. Raises ``ValueError`` if a weight is not finite.
    """
    match weight_format:
        case WeightFormat.F32:
            return _bytes_of(array)
        case WeightFormat.F16:
            return _bytes_of(array.astype(np.float16))
        case WeightFormat.BF16:
            return _bytes_of(_bf16_of(array))
        case WeightFormat.Q8_G32:
            return pack_q8_g32(array)
        case WeightFormat.Q4_G32:
            return pack_q4_g32(array)
        case WeightFormat.MXFP4:
            return _in_slices(array, pack_fp4_groups)
        case WeightFormat.Q4A_G32 | WeightFormat.Q6_G32:
            bits = STORED_BITS[weight_format]
            pack_groups = functools.partial(
                pack_affine_groups, importance=_grouped_importance(importance), bits=bits
            )
            return _in_slices(array, pack_groups)
        case WeightFormat.Q3_G16 | WeightFormat.Q2_G16:
            bits = STORED_BITS[weight_format]
            pack_groups = functools.partial(
                pack_small_groups, importance=_grouped_importance(importance), bits=bits
            )
            return _in_slices(array, pack_groups)
        case WeightFormat.Q4K_G32 | WeightFormat.Q5K_G32:
            bits = STORED_BITS[weight_format]
            return _in_slices(array, functools.partial(pack_spans, bits=bits))
        case WeightFormat.Q6K_G16 | WeightFormat.Q3K_G16 | WeightFormat.Q2K_G16:
            bits = STORED_BITS[weight_format]
            return _in_slices(array, functools.partial(pack_half_spans, bits=bits))


def pack_q8_g32(array: Floats) -> Bytes:
    """Return a matrix in eight bits: the largest weight of each group becomes level 127."""
    return _in_slices(array, _pack_q8_slice)


def pack_q4_g32(array: Floats) -> Bytes:
    """Return a matrix in four bits, levels -8 to 7.

    A group's scale is the one of the least squared error among those that put its largest weight
    on some levels near the ends, each improved once by least squares. It may be negative.
    """
    return _in_slices(array, _pack_q4_slice)


def unpack(weight_format: WeightFormat, data: Bytes, rows: int, columns: int) -> Floats:
    """Return the weights ``[rows, columns]`` that the bytes of a matrix stand for."""
    if data.size != matrix_bytes(weight_format, rows, columns):
        raise ValueError(f"{data.size} bytes for {rows} x {columns} in {weight_format}")
    match weight_format:
        case WeightFormat.F32:
            return data.view(np.float32).reshape(rows, columns).copy()
        case WeightFormat.F16:
            return data.view(np.float16).reshape(rows, columns).astype(np.float32)
        case WeightFormat.BF16:
            upper = data.view(np.uint16).reshape(rows, columns).astype(np.uint32)
            return (upper << np.uint32(16)).view(np.float32)
        case WeightFormat.Q8_G32:
            return _unpack_q8(data, rows, columns)
        case WeightFormat.Q4_G32:
            return _unpack_q4(data, rows, columns)
        case WeightFormat.MXFP4:
            return _unpack_fp4(data, rows, columns)
        case WeightFormat.Q4A_G32 | WeightFormat.Q6_G32:
            return unpack_affine(data, rows, columns, STORED_BITS[weight_format])
        case WeightFormat.Q3_G16 | WeightFormat.Q2_G16:
            return unpack_small(data, rows, columns, STORED_BITS[weight_format])
        case WeightFormat.Q4K_G32 | WeightFormat.Q5K_G32:
            return unpack_spans(data, rows, columns, STORED_BITS[weight_format])
        case WeightFormat.Q6K_G16 | WeightFormat.Q3K_G16 | WeightFormat.Q2K_G16:
            return unpack_half_spans(data, rows, columns, STORED_BITS[weight_format])


def _bytes_of(array: npt.NDArray[np.generic]) -> Bytes:
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1)


def _bf16_of(array: Floats) -> npt.NDArray[np.uint16]:
    """Round to bf16, ties to even."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype(np.uint16)


def _in_slices(array: Floats, pack_slice: Callable[[Floats], Bytes]) -> Bytes:
    """Pack some row blocks at a time, so that work memory stays small beside a large matrix."""
    if not np.isfinite(array).all():
        raise ValueError("a weight is not finite")
    num_rows = max(1, _SLICE_WEIGHTS // array.shape[1] // ROW_BLOCK) * ROW_BLOCK
    parts = [
        pack_slice(_grouped(array[start : start + num_rows]))
        for start in range(0, len(array), num_rows)
    ]
    return np.concatenate(parts)


def _grouped(array: Floats) -> Floats:
    """Pad and return as ``[blocks, ROW_BLOCK, groups, GROUP_SIZE]``."""
    rows, columns = array.shape
    num_blocks, num_groups = -(-rows // ROW_BLOCK), -(-columns // GROUP_SIZE)
    padded = np.zeros((num_blocks * ROW_BLOCK, num_groups * GROUP_SIZE), np.float32)
    padded[:rows, :columns] = array
    return padded.reshape(num_blocks, ROW_BLOCK, num_groups, GROUP_SIZE)


def _grouped_importance(importance: Floats | None) -> Floats | None:
    """Pad and return as ``[groups, GROUP_SIZE]``, the largest 1; None where all count the same."""
    largest = 0.0 if importance is None else float(importance.max())
    if importance is None or not largest > 0:
        return None
    # What counts for nothing, padding too, decides where nothing else does.
    padded = np.full(-(-len(importance) // GROUP_SIZE) * GROUP_SIZE, _LEAST_COUNT, np.float32)
    padded[: len(importance)] = np.maximum(importance / largest, _LEAST_COUNT)
    return padded.reshape(-1, GROUP_SIZE)


def _f16_scales(scales: Floats) -> Floats:
    """Round scales as they will be stored, held inside the format's range."""
    limit = float(np.finfo(np.float16).max)
    return np.clip(scales, -limit, limit).astype(np.float16).astype(np.float32)


def _levels(groups: Floats, scales: Floats, lowest: int, highest: int) -> Floats:
    """Return the nearest levels of weights under one scale for each group; scale 0 gives 0."""
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)
    levels: Floats = groups * inverse[..., None]
    np.rint(levels, out=levels)
    return np.clip(levels, lowest, highest, out=levels)


def _with_scales(scales: Floats, weights: Bytes) -> Bytes:
    """Join ``scales[blocks, 8, groups]`` and ``weights[blocks, groups, bytes]`` as stored."""
    stored = np.ascontiguousarray(scales.transpose(0, 2, 1).astype(np.float16)).view(np.uint8)
    return np.concatenate([stored, weights], axis=2).reshape(-1)


def _pack_q8_slice(groups: Floats) -> Bytes:
    scales = _f16_scales(np.abs(groups).max(axis=-1) / _Q8_MAX)
    levels = _levels(groups, scales, -_Q8_MAX, _Q8_MAX).astype(np.int8)
    blocks, _, num_groups, _ = groups.shape
    quads = levels.reshape(blocks, ROW_BLOCK, num_groups, -1, QUAD).transpose(0, 2, 3, 1, 4)
    return _with_scales(scales, _bytes_of(quads).reshape(blocks, num_groups, -1))


def _pack_q4_slice(groups: Floats) -> Bytes:
    blocks, _, num_groups, _ = groups.shape
    # Columns of 32 weights, one group each, in the order in which they are stored.
    columns = np.ascontiguousarray(groups.transpose(3, 0, 2, 1)).reshape(GROUP_SIZE, -1)
    scales, levels = _q4_scales(columns)
    levels -= _Q4_MIN
    quads = paired(levels).reshape(-1, QUAD, blocks, num_groups, ROW_BLOCK).transpose(2, 3, 0, 4, 1)
    by_row = scales.reshape(blocks, num_groups, ROW_BLOCK).transpose(0, 2, 1)
    return _with_scales(by_row, _bytes_of(quads).reshape(blocks, num_groups, -1))


def _q4_scales(columns: Floats) -> tuple[Floats, Floats]:
    """Return scales as they will be stored and levels of groups ``[GROUP_SIZE, groups]``.

    Levels ``l`` of weights ``x`` leave, with the best scale for them, the squared error
    ``x.x - (l.x)^2 / l.l``, so that the largest quotient is the least error. It is computed on
    weights whose largest is 1.
    """
    highest, lowest = columns.max(axis=0), columns.min(axis=0)
    largest = np.where(highest > -lowest, highest, lowest)
    units = columns * _inverse(largest, _LEAST_LARGEST)
    levels = np.empty_like(units)
    best = np.full_like(largest, -1.0)
    fitted = np.zeros_like(largest)
    for end in _Q4_ENDS:
        np.multiply(units, np.float32(end), out=levels)
        along, scale = _fit(levels, units)
        quotient = along * scale
        np.copyto(fitted, scale, where=quotient > best)
        np.maximum(best, quotient, out=best)
    first = _f16_scales(fitted * largest)
    np.multiply(columns, _inverse(first), out=levels)
    _, again = _fit(levels, units)
    scales = _f16_scales(again * largest)
    np.multiply(columns, _inverse(scales), out=levels)
    _to_levels(levels)
    return scales, levels


def _inverse(scales: Floats, least: float = 0.0) -> Floats:
    """Return 1 by each scale whose magnitude is above ``least``, else 0."""
    is_scale = np.abs(scales) > least
    return np.divide(np.float32(1.0), scales, out=np.zeros_like(scales), where=is_scale)


def _to_levels(values: Floats) -> None:
    """Turn values into their nearest levels, in place."""
    np.rint(values, out=values)
    np.clip(values, _Q4_MIN, _Q4_MAX, out=values)


def _fit(values: Floats, units: Floats) -> tuple[Floats, Floats]:
    """Turn values into levels, in place; return their product with ``units`` and the best scale."""
    _to_levels(values)
    squares = np.einsum("kg,kg->g", values, values)
    along: Floats = np.einsum("kg,kg->g", values, units)
    scale = np.divide(along, squares, out=np.zeros_like(along), where=squares != 0)
    return along, scale


def _split(
    data: Bytes, columns: int, weight_bytes: int, scale_bytes: int = 2 * ROW_BLOCK
) -> tuple[Bytes, Bytes]:
    """Return scales ``[blocks, groups, bytes]`` and weights ``[blocks, groups, quads, 8, 4]``."""
    groups = data.reshape(-1, -(-columns // GROUP_SIZE), scale_bytes + weight_bytes)
    scales = np.ascontiguousarray(groups[..., :scale_bytes])
    weights = groups[..., scale_bytes:]
    return scales, weights.reshape(*groups.shape[:2], -1, ROW_BLOCK, QUAD)


def _unpack_q8(data: Bytes, rows: int, columns: int) -> Floats:
    stored, weights = _split(data, columns, ROW_BLOCK * GROUP_SIZE)
    scales = stored.view(np.float16).astype(np.float32)
    return _joined(weights.view(np.int8).astype(np.float32), scales, rows, columns)


def _unpack_q4(data: Bytes, rows: int, columns: int) -> Floats:
    stored, pairs = _split(data, columns, ROW_BLOCK * GROUP_SIZE // 2)
    scales = stored.view(np.float16).astype(np.float32)
    return _joined(halves(pairs).astype(np.float32) + _Q4_MIN, scales, rows, columns)


def _unpack_fp4(data: Bytes, rows: int, columns: int) -> Floats:
    exponents, pairs = _split(data, columns, ROW_BLOCK * GROUP_SIZE // 2, ROW_BLOCK)
    return _joined(LEVELS[halves(pairs)], fp4_scales(exponents), rows, columns)


def _joined(levels: Floats, scales: Floats, rows: int, columns: int) -> Floats:
    """Turn ``levels[blocks, groups, quads, 8, 4]`` and scales back into a matrix."""
    return in_rows(levels * scales[:, :, None, :, None], rows, columns)
