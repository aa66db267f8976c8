"""The formats of three and two bits: levels with a scale and a least weight for 16 weights.

Both are whole numbers of four bits in units of their row; see docs/formats.md for the drawing.
"""

import itertools

import numpy as np

from runtime.kernels.affine import lines, nearest_levels, parts_of, stored, units_of
from runtime.kernels.bit_planes import packed_levels
from runtime.kernels.quads import Bytes, Floats, in_rows
from runtime.spec.tensors import GROUP_SIZE, ROW_BLOCK

HALF = GROUP_SIZE // 2
"""Weights that share a scale."""
_MOST = 15
_UNIT_PARTS = (
    (1.0, 1.0), (0.7, 1.0), (1.0, 0.7), (0.7, 0.7), (0.5, 0.5), (0.35, 0.35), (0.25, 0.25),
    (0.15, 0.15),
)  # fmt: skip
"""Units of scales and of leasts that are tried where weights count differently, as parts of those
that hold the largest of a row: the largest are often of weights that count little."""
_SPREADS = {3: (5.6, 6.2, 6.8, 7.4), 2: (2.3, 2.7, 3.1, 3.5)}
"""Levels into which the span of a half group is tried to be stretched, by bits."""


def pack_small_groups(groups: Floats, importance: Floats | None = None, bits: int = 3) -> Bytes:
    """Return ``[blocks, 8, groups, 32]`` weights as stored, levels in three or two bits.

    A weight is ``unit * scale * level - least_unit * least``. The best scale and least weight of
    16 weights are searched first; of the whole numbers on both sides of them those are taken
    with which the nearest levels err least. ``importance`` ``[groups, 32]`` is how much the error
    of each column counts; then some units of each row are tried too.
    """
    blocks, _, num_groups, _ = groups.shape
    halves = groups.reshape(-1, HALF)
    columns = np.ascontiguousarray(halves.T)
    highest = (1 << bits) - 1
    counts = None
    if importance is not None:
        by_half = np.ascontiguousarray(importance.reshape(-1, HALF).T)
        counts = np.tile(by_half, blocks * ROW_BLOCK)
    found = lines(columns, highest, _SPREADS[bits], counts)
    scales, leasts = (each.reshape(blocks, ROW_BLOCK, -1) for each in found)
    widest = units_of(scales, _MOST), units_of(leasts, _MOST)
    units, least_units = widest
    if counts is not None:
        units, least_units = _best_units(columns, found, widest, highest, counts)
    # One unit for each half group, in the order of the columns.
    spread = tuple(np.repeat(each.reshape(-1), 2 * num_groups) for each in (units, least_units))
    both = (spread[0], spread[1])
    whole_scales, whole_leasts = _best_wholes(columns, found, both, highest, counts)
    levels = nearest_levels(columns, spread[0] * whole_scales, spread[1] * whole_leasts, highest)
    by_group = levels.reshape(HALF, -1, 2).transpose(2, 0, 1).reshape(GROUP_SIZE, -1)
    wholes = tuple(
        _both_halves(each).reshape(blocks, ROW_BLOCK, -1) for each in (whole_scales, whole_leasts)
    )
    return stored((units, least_units), (wholes[0], wholes[1]), packed_levels(by_group, bits))


def _best_units(
    columns: Floats,
    found: tuple[Floats, Floats],
    widest: tuple[Floats, Floats],
    highest: int,
    counts: Floats,
) -> tuple[Floats, Floats]:
    """Return the units ``[blocks, 8]`` of each row with which it errs least, simply rounded."""
    shape = widest[0].shape
    num_halves = columns.shape[1] // widest[0].size
    best = np.full(shape, np.inf, np.float32)
    kept = tuple(np.zeros_like(each) for each in widest)
    for parts in _UNIT_PARTS:
        tried = [
            (each * np.float32(part)).astype(np.float16).astype(np.float32)
            for each, part in zip(widest, parts, strict=True)
        ]
        spread = [np.repeat(each.reshape(-1), num_halves) for each in tried]
        scales, leasts = (
            np.clip(np.rint(_in_units(value, unit)), 0, _MOST) * unit
            for value, unit in zip(found, spread, strict=True)
        )
        errors = _errors(columns, scales, leasts, highest, counts)
        error = errors.reshape(-1, num_halves).sum(axis=1).reshape(shape)
        is_better = error < best
        for target, value in zip((best, *kept), (error, *tried), strict=True):
            np.copyto(target, value, where=is_better)
    return kept[0], kept[1]


def _best_wholes(
    columns: Floats,
    found: tuple[Floats, Floats],
    units: tuple[Floats, Floats],
    highest: int,
    counts: Floats | None,
) -> tuple[Floats, Floats]:
    """Return scales and leasts as whole numbers of units, those of the least squared error."""
    below = [np.floor(_in_units(value, unit)) for value, unit in zip(found, units, strict=True)]
    best = np.full_like(units[0], np.inf)
    kept = tuple(np.zeros_like(each) for each in units)
    for steps in itertools.product((0, 1), repeat=2):
        wholes = [
            np.clip(each + np.float32(step), 0, _MOST)
            for each, step in zip(below, steps, strict=True)
        ]
        scales, leasts = wholes[0] * units[0], wholes[1] * units[1]
        error = _errors(columns, scales, leasts, highest, counts)
        is_better = error < best
        for target, value in zip((best, *kept), (error, *wholes), strict=True):
            np.copyto(target, value, where=is_better)
    return kept[0], kept[1]


def _in_units(values: Floats, units: Floats) -> Floats:
    return np.divide(values, units, out=np.zeros_like(values), where=units > 0)


def _errors(
    columns: Floats, scales: Floats, leasts: Floats, highest: int, counts: Floats | None
) -> Floats:
    """Return the squared error of each group with its nearest levels."""
    errors = nearest_levels(columns, scales, leasts, highest)
    errors *= scales
    errors -= leasts
    errors -= columns
    if counts is None:
        found: Floats = np.einsum("kg,kg->g", errors, errors)
        return found
    weighed: Floats = np.einsum("kg,kg,kg->g", counts, errors, errors)
    return weighed


def _both_halves(values: Floats) -> Bytes:
    """Return whole numbers of half groups as one byte for each group."""
    pairs = values.astype(np.uint8).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << np.uint8(4)


def unpack_small(data: Bytes, rows: int, columns: int, bits: int) -> Floats:
    """Return the weights that the bytes of a matrix stand for."""
    units, scales, leasts, levels = parts_of(data, columns, bits)
    scale, least = (
        _for_quads(each, units[:, place]) for place, each in enumerate((scales, leasts))
    )
    return in_rows(levels.astype(np.float32) * scale - least, rows, columns)


def _for_quads(stored_bytes: Bytes, units: Floats) -> Floats:
    """Return what bytes ``[blocks, groups, 8]`` stand for as ``[blocks, groups, 8, 8, 1]``."""
    both = np.stack([stored_bytes & np.uint8(15), stored_bytes >> np.uint8(4)], axis=2)
    values = both.astype(np.float32) * units[:, None]
    return np.repeat(values, HALF // 4, axis=2)[..., None]
