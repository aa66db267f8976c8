"""Q2_K, Q3_K and Q6_K as formats of kernels: blocks of GGUF files with eight rows interleaved.

Sixteen weights of a row share a scale in units, in fp16, of 256. A weight of Q3_K and Q6_K is
``unit * scale * (level - offset)``, its scale has a sign; one of Q2_K is ``unit * scale * level -
least_unit * least``. See docs/formats.md for the drawing.
"""

import numpy as np

from runtime.kernels.affine import in_units, lines, nearest_levels, units_of
from runtime.kernels.quads import Bytes, Floats, in_rows
from runtime.spec.tensors import GROUP_SIZE, QUAD, ROW_BLOCK, SPAN

_GROUPS = SPAN // GROUP_SIZE
_HALF = GROUP_SIZE // 2
_UNIT_BYTES, _SCALE_BYTES = 2 * ROW_BLOCK, 2 * _GROUPS * ROW_BLOCK
_OFFSETS = {6: 32, 3: 4}
_MOST_SCALES = {6: 127, 3: 31}
_MOST_NIBBLE = 15
_SPREADS = (2.3, 2.7, 3.1, 3.5)
"""Levels of two bits into which the span of 16 weights is tried to be stretched."""
_EIGHT = np.arange(_GROUPS, dtype=np.uint8).reshape(_GROUPS, 1, 1, 1)
_TWOS = _EIGHT[:4] * np.uint8(2)
_LOW, _TWO = np.uint8(15), np.uint8(3)


def pack_half_spans(groups: Floats, bits: int) -> Bytes:
    """Return ``[blocks, 8, groups, 32]`` weights as stored, columns filled up to whole spans.

    A level has six, three or two bits. With six and three the largest of 16 weights without its
    sign becomes a level at the end, as far as the scale can be told in units; with two the scale
    and the least weight are those of the least squared error among some spreads.
    """
    missing = -groups.shape[2] % _GROUPS
    groups = np.pad(groups, ((0, 0), (0, 0), (0, missing), (0, 0)))
    halves = groups.reshape(len(groups), ROW_BLOCK, -1, 2 * _GROUPS, _HALF)
    units, scales, levels = _with_leasts(halves) if bits == 2 else _with_signs(halves, bits)
    blocks, num_spans = len(groups), halves.shape[2]
    by_row = levels.reshape(blocks, ROW_BLOCK, num_spans, _GROUPS, 8, QUAD)
    vectors = _vectors(by_row.transpose(0, 2, 3, 4, 1, 5), bits)
    parts = (
        *(np.ascontiguousarray(each.transpose(0, 2, 1)).view(np.uint8) for each in units),
        scales.reshape(blocks, ROW_BLOCK, num_spans, _GROUPS, 2).transpose(0, 2, 3, 1, 4),
        vectors,
    )
    shape = (blocks, num_spans, -1)
    return np.concatenate([each.reshape(shape) for each in parts], axis=2).reshape(-1)


def _with_signs(halves: Floats, bits: int) -> tuple[list[Floats], Bytes, Bytes]:
    """Return units ``[blocks, 8, spans]`` in fp16, scales for each half group, and levels."""
    offset, most = _OFFSETS[bits], _MOST_SCALES[bits]
    wanted = np.abs(halves).max(axis=-1) / (offset - 1)
    units = (wanted.max(axis=-1) / most).astype(np.float16)
    scales = np.rint(_quotient(wanted, units.astype(np.float32)[..., None])).clip(0, most)
    steps = units.astype(np.float32)[..., None] * scales
    levels = np.rint(_quotient(halves, steps[..., None])).clip(-offset, offset - 1) + offset
    return [units], scales.astype(np.uint8), levels.astype(np.uint8)


def _with_leasts(halves: Floats) -> tuple[list[Floats], Bytes, Bytes]:
    """Return both units ``[blocks, 8, spans]`` in fp16, scales and leasts, and levels."""
    shape = halves.shape[:-1]
    columns = np.ascontiguousarray(halves.reshape(-1, _HALF).T)
    found = [each.reshape(shape) for each in lines(columns, 3, _SPREADS)]
    units = [units_of(each, _MOST_NIBBLE) for each in found]
    wholes = [in_units(each, unit, _MOST_NIBBLE) for each, unit in zip(found, units, strict=True)]
    steps, leasts = (
        (unit[..., None] * whole).reshape(-1) for unit, whole in zip(units, wholes, strict=True)
    )
    levels = nearest_levels(columns, steps, leasts, 3).astype(np.uint8).T
    scales, lowest = (each.astype(np.uint8) for each in wholes)
    return [each.astype(np.float16) for each in units], scales | lowest << np.uint8(4), levels


def _vectors(levels: Bytes, bits: int) -> Bytes:
    """Return runs of bundles of vectors of levels ``[blocks, spans, groups, quads, 8, 4]``."""
    if bits == 6:
        by_four = levels.reshape(*levels.shape[:2], 2, 4, *levels.shape[3:])
        fours = by_four & _LOW
        lower = fours[:, :, :, :2] | fours[:, :, :, 2:] << np.uint8(4)
        upper = np.bitwise_or.reduce(by_four >> np.uint8(4) << _TWOS, axis=3, keepdims=True)
        return np.concatenate([lower, upper], axis=3).swapaxes(3, 4)
    twos = (levels & _TWO).reshape(*levels.shape[:2], 2, 4, *levels.shape[3:]) << _TWOS
    vectors = np.bitwise_or.reduce(twos, axis=3)
    if bits == 3:
        thirds = np.bitwise_or.reduce(levels >> np.uint8(2) << _EIGHT, axis=2, keepdims=True)
        vectors = np.concatenate([vectors, thirds], axis=2)
    bundles: Bytes = vectors.swapaxes(2, 3)
    return bundles


def unpack_half_spans(data: Bytes, rows: int, columns: int, bits: int) -> Floats:
    """Return the weights that the bytes of a matrix stand for."""
    num_spans = -(-columns // SPAN)
    num_units = 2 if bits == 2 else 1
    head_bytes = num_units * _UNIT_BYTES + _SCALE_BYTES
    spans = data.reshape(-1, num_spans, head_bytes + ROW_BLOCK * SPAN * bits // 8)
    head = np.ascontiguousarray(spans[..., : num_units * _UNIT_BYTES]).view(np.float16)
    units = head.astype(np.float32).reshape(len(spans), num_spans, num_units, 1, ROW_BLOCK, 1)
    stored = np.ascontiguousarray(spans[..., num_units * _UNIT_BYTES : head_bytes])
    stored = stored.reshape(len(spans), num_spans, _GROUPS, ROW_BLOCK, 2)
    scales = stored & _LOW if bits == 2 else stored.view(np.int8)
    steps = _for_halves(units[:, :, 0] * scales.astype(np.float32))
    levels = _levels(spans[..., head_bytes:], bits).astype(np.float32) - _OFFSETS.get(bits, 0)
    # Quads of the first 16 columns of a group and of the others.
    weights = levels.reshape(len(spans), num_spans, _GROUPS, 2, 4, ROW_BLOCK, QUAD) * steps
    if bits == 2:
        lowest = (stored >> np.uint8(4)).astype(np.float32)
        weights -= _for_halves(units[:, :, 1] * lowest)
    return in_rows(
        weights.reshape(len(spans), num_spans * _GROUPS, 8, ROW_BLOCK, QUAD), rows, columns
    )


def _for_halves(values: Floats) -> Floats:
    """Return values ``[blocks, spans, groups, 8, 2]`` as ``[..., groups, 2, 1, 8, 1]``."""
    return values.swapaxes(3, 4)[..., None, :, None]


def _levels(vectors: Bytes, bits: int) -> Bytes:
    """Return levels ``[blocks, spans, groups, quads, 8, 4]`` of runs of bundles of vectors."""
    runs, size = (2, 3) if bits == 6 else (1, bits)
    bundles = vectors.reshape(*vectors.shape[:2], runs, 8, size, ROW_BLOCK, QUAD).swapaxes(3, 4)
    shape = (*vectors.shape[:2], _GROUPS, 8, ROW_BLOCK, QUAD)
    if bits == 6:
        lower, upper = bundles[:, :, :, :2], bundles[:, :, :, 2:]
        fours = np.concatenate([lower & _LOW, lower >> np.uint8(4)], axis=3)
        six: Bytes = (fours | (upper >> _TWOS & _TWO) << np.uint8(4)).reshape(shape)
        return six
    levels: Bytes = (bundles[:, :, 0, :2, None] >> _TWOS & _TWO).reshape(shape)
    if bits == 3:
        levels |= (bundles[:, :, 0, 2:] >> _EIGHT & np.uint8(1)) << np.uint8(2)
    return levels


def _quotient(values: Floats, steps: Floats) -> Floats:
    """Return values in steps; 0 where a step is 0."""
    shape = np.broadcast_shapes(values.shape, steps.shape)
    return np.divide(values, steps, out=np.zeros(shape, np.float32), where=steps > 0)
