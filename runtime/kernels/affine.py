"""The affine formats: levels with a scale and a least weight of their own for 32 weights.

Levels have four or six bits; scale and least weight are whole numbers of eight bits in units of
their row. See docs/formats.md for the drawing.
"""

import dataclasses

import numpy as np

from runtime.kernels.bit_planes import packed_levels, unpacked_levels
from runtime.kernels.quads import Bytes, Floats, in_rows
from runtime.spec.tensors import GROUP_SIZE, QUAD, ROW_BLOCK

_MOST = 255
_COARSE_BELOW = np.float32(2.0**-18)
"""Of the units of fp16, which are 2^-24 apart there."""
SPREADS = {
    4: (13.6, 14.2, 14.7, 15.2, 15.7),
    5: (29.6, 30.3, 30.8, 31.4),
    6: (62.0, 62.6, 63.0, 63.4),
}
"""Levels into which the span of a group is tried to be stretched, by bits."""
_LEAST_SPAN = 2.0**-60
"""A span that is smaller counts as none."""
_CUTS = ((1.2, 0.0), (1.2, 0.08), (1.45, 0.15))
"""Where weights count differently, further tries: times the widest spread, and the part of the span
that is cut off at the low end. The largest weights are often those that count least."""


def pack_affine_groups(groups: Floats, importance: Floats | None = None, bits: int = 4) -> Bytes:
    """Return ``[blocks, 8, groups, 32]`` weights as stored, levels in four or six bits.

    A weight is ``unit * scale * level - least_unit * least``. Scale and least of a group are those
    of the least squared error among some spreads, each improved by least squares; then both are
    rounded to units of the row and the levels chosen anew. ``importance`` ``[groups, 32]`` is how
    much the error of each column counts.
    """
    blocks = len(groups)
    columns = np.ascontiguousarray(groups.transpose(3, 0, 1, 2)).reshape(GROUP_SIZE, -1)
    highest = (1 << bits) - 1
    counts = None if importance is None else _for_columns(importance, columns.shape[1])
    found = lines(columns, highest, SPREADS[bits], counts)
    scales, leasts = (each.reshape(blocks, ROW_BLOCK, -1) for each in found)
    units, least_units = units_of(scales, _MOST), units_of(leasts, _MOST)
    whole_scales = in_units(scales, units, _MOST)
    whole_leasts = in_units(leasts, least_units, _MOST)
    real_scales = (units[..., None] * whole_scales).reshape(-1)
    real_leasts = (least_units[..., None] * whole_leasts).reshape(-1)
    levels = nearest_levels(columns, real_scales, real_leasts, highest)
    return stored(
        (units, least_units),
        (whole_scales.astype(np.uint8), whole_leasts.astype(np.uint8)),
        packed_levels(levels, bits),
    )


def stored(units: tuple[Floats, Floats], wholes: tuple[Bytes, Bytes], levels: Bytes) -> Bytes:
    """Join units ``[blocks, 8]`` of scales and leasts, both ``[blocks, 8, groups]``, and levels.

    Levels are ``[4 * vectors, blocks * 8 * groups]``.
    """
    blocks, _, num_groups = wholes[0].shape
    quads = levels.reshape(-1, QUAD, blocks, ROW_BLOCK, num_groups).transpose(2, 4, 0, 3, 1)
    weights = np.ascontiguousarray(quads).reshape(blocks, num_groups, -1)
    parts = [each.transpose(0, 2, 1) for each in wholes]
    body = np.concatenate([*parts, weights], axis=2).reshape(blocks, -1)
    head = np.concatenate(units, axis=1).astype(np.float16).view(np.uint8)
    return np.concatenate([head, body], axis=1).reshape(-1)


def _for_columns(importance: Floats, num_groups: int) -> Floats:
    """Return the importance ``[size, groups]`` of groups that follow each other row by row."""
    return np.tile(np.ascontiguousarray(importance.T), num_groups // len(importance))


def lines(
    columns: Floats, highest: int, spreads: tuple[float, ...], counts: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return scale and least weight (its magnitude, at least 0) of groups ``[size, groups]``.

    ``counts``, of the same shape, is how much the error of each weight counts; None: all the same.
    """
    lowest = np.minimum(columns.min(axis=0), 0.0)
    span = np.maximum(columns.max(axis=0), 0.0) - lowest
    inverse = np.divide(1.0, span, out=np.zeros_like(span), where=span > _LEAST_SPAN)
    units = (columns - lowest) * inverse
    sums = _sums(units, counts)
    best = np.full_like(span, np.inf)
    scale, offset = np.zeros_like(span), np.zeros_like(span)
    # In units of the span and counted from the lowest weight, 0 is at -lowest / span.
    zero = -lowest * inverse
    levels = np.empty_like(units)
    for spread in spreads:
        np.multiply(units, np.float32(spread), out=levels)
        np.rint(levels, out=levels)
        np.minimum(levels, highest, out=levels)
        _keep_better((units, levels), sums, zero, (best, scale, offset))
    if counts is not None:
        for wider, cut in _CUTS:
            np.multiply(units - np.float32(cut), np.float32(wider * spreads[-1]), out=levels)
            np.rint(levels, out=levels)
            np.clip(levels, 0, highest, out=levels)
            _keep_better((units, levels), sums, zero, (best, scale, offset))
    # Once more from the best line: its levels, and the best line for them.
    for _ in range(1 if counts is None else 2):
        again = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        np.multiply(units - offset, again, out=levels)
        np.rint(levels, out=levels)
        np.clip(levels, 0, highest, out=levels)
        _keep_better((units, levels), sums, zero, (best, scale, offset))
    return scale * span, np.maximum(-(offset * span + lowest), 0.0)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums over the weights of each group, each weight as often as it counts."""

    counts: Floats | None
    mass: Floats
    total: Floats
    squares: Floats

    def of(self, values: Floats) -> Floats:
        """Return the sum of values."""
        if self.counts is None:
            whole: Floats = values.sum(axis=0)
            return whole
        weighed: Floats = np.einsum("kg,kg->g", self.counts, values)
        return weighed

    def product(self, one: Floats, other: Floats) -> Floats:
        """Return the sum of products."""
        if self.counts is None:
            whole: Floats = np.einsum("kg,kg->g", one, other)
            return whole
        weighed: Floats = np.einsum("kg,kg,kg->g", self.counts, one, other)
        return weighed


def _sums(units: Floats, counts: Floats | None) -> _Sums:
    mass = np.float32(len(units)) if counts is None else counts.sum(axis=0)
    none = np.zeros(0, np.float32)
    empty = _Sums(counts, np.asarray(mass, np.float32), none, none)
    return dataclasses.replace(empty, total=empty.of(units), squares=empty.product(units, units))


def _keep_better(
    pair: tuple[Floats, Floats],
    sums: _Sums,
    zero: Floats,
    found: tuple[Floats, Floats, Floats],
) -> None:
    """Fit a line through levels and weights; keep it where it errs less than the one found."""
    (units, levels), (best, scale, offset) = pair, found
    ones, total, squares = sums.mass, sums.total, sums.squares
    level_sum, level_squares = sums.of(levels), sums.product(levels, levels)
    along = sums.product(levels, units)
    spread = ones * level_squares - level_sum * level_sum
    slope = np.divide(
        ones * along - level_sum * total, spread, out=np.zeros_like(spread), where=spread > 0
    )
    start = (total - slope * level_sum) / ones
    # A least weight above 0 is not stored: the line goes through 0 then.
    is_high = start > zero
    through = np.divide(
        along - zero * level_sum, level_squares, out=np.zeros_like(along), where=level_squares > 0
    )
    slope, start = np.where(is_high, through, slope), np.where(is_high, zero, start)
    error = (
        squares
        + slope * slope * level_squares
        + ones * start * start
        + 2 * (slope * start * level_sum - slope * along - start * total)
    )
    is_better = error < best
    for target, value in ((best, error), (scale, slope), (offset, start)):
        np.copyto(target, value, where=is_better)


def units_of(values: Floats, most: int) -> Floats:
    """Return the unit of each row, as it will be stored, so that its largest value is ``most``."""
    limit = np.float32(np.finfo(np.float16).max)
    exact = np.minimum(values.max(axis=-1) / np.float32(most), limit)
    units = exact.astype(np.float16)
    # Where fp16 is coarse, one that was rounded down would cut the largest values off.
    is_short = (exact < _COARSE_BELOW) & (units.astype(np.float32) < exact)
    np.nextafter(units, np.float16(np.inf), out=units, where=is_short)
    as_stored: Floats = units.astype(np.float32)
    return as_stored


def in_units(values: Floats, units: Floats, most: int) -> Floats:
    """Return values as whole numbers of their row's unit."""
    inverse = np.divide(1.0, units, out=np.zeros_like(units), where=units > 0)
    whole: Floats = np.rint(values * inverse[..., None])
    return np.clip(whole, 0, most, out=whole)


def nearest_levels(columns: Floats, scales: Floats, leasts: Floats, highest: int) -> Floats:
    """Return the nearest levels of weights ``[size, groups]``; a scale of 0 gives 0."""
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 0)
    levels: Floats = (columns + leasts) * inverse
    np.rint(levels, out=levels)
    return np.clip(levels, 0, highest, out=levels)


def parts_of(data: Bytes, columns: int, bits: int) -> tuple[Floats, Bytes, Bytes, Bytes]:
    """Return units ``[blocks, 2, 1, 8]``, bytes of scales and of leasts, and quads of levels.

    Bytes are ``[blocks, groups, 8]``, levels ``[blocks, groups, quads, 8, 4]``.
    """
    num_groups = -(-columns // GROUP_SIZE)
    head_bytes, level_bytes = 4 * ROW_BLOCK, ROW_BLOCK * GROUP_SIZE * bits // 8
    blocks = data.reshape(-1, head_bytes + num_groups * (2 * ROW_BLOCK + level_bytes))
    units = np.ascontiguousarray(blocks[:, :head_bytes]).view(np.float16).astype(np.float32)
    body = blocks[:, head_bytes:].reshape(len(blocks), num_groups, -1)
    vectors = body[..., 2 * ROW_BLOCK :].reshape(len(blocks), num_groups, -1, ROW_BLOCK, QUAD)
    return (
        units.reshape(-1, 2, 1, ROW_BLOCK),
        body[..., :ROW_BLOCK],
        body[..., ROW_BLOCK : 2 * ROW_BLOCK],
        unpacked_levels(vectors, bits),
    )


def unpack_affine(data: Bytes, rows: int, columns: int, bits: int = 4) -> Floats:
    """Return the weights that the bytes of a matrix stand for."""
    units, scales, leasts, levels = parts_of(data, columns, bits)
    scale = (units[:, 0] * scales.astype(np.float32))[:, :, None, :, None]
    least = (units[:, 1] * leasts.astype(np.float32))[:, :, None, :, None]
    return in_rows(levels.astype(np.float32) * scale - least, rows, columns)
