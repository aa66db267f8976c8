"""Q4_K and Q5_K as formats of kernels: the blocks of GGUF files with eight rows interleaved.

A weight is ``unit * scale * level - least_unit * least``: levels of four or five bits, scales and
leasts of six for 32 weights, units in fp16 for 256. See docs/formats.md for the drawing.
"""

import numpy as np

from runtime.kernels.affine import SPREADS, in_units, lines, nearest_levels, units_of
from runtime.kernels.quads import Bytes, Floats, in_rows
from runtime.spec.tensors import GROUP_SIZE, QUAD, ROW_BLOCK, SPAN

SPAN_GROUPS = SPAN // GROUP_SIZE
HEAD_BYTES = ROW_BLOCK * 16
"""Of a span, before its levels: units, then scales and leasts."""
_MOST = 63
_SIX, _FOUR = np.uint8(63), np.uint8(15)
_FIFTHS = np.arange(SPAN_GROUPS, dtype=np.uint8).reshape(-1, 2)
"""Which bit of a byte is the fifth of a level: of pairs of groups, of both groups."""


def pack_spans(groups: Floats, bits: int = 4) -> Bytes:
    """Return ``[blocks, 8, groups, 32]`` weights as stored, columns filled up to whole spans.

    A level has four or five bits.
    """
    highest = (1 << bits) - 1
    missing = -groups.shape[2] % SPAN_GROUPS
    groups = np.pad(groups, ((0, 0), (0, 0), (0, missing), (0, 0)))
    by_span = (len(groups), ROW_BLOCK, -1, SPAN_GROUPS)
    columns = np.ascontiguousarray(groups.transpose(3, 0, 1, 2)).reshape(GROUP_SIZE, -1)
    found = lines(columns, highest, SPREADS[bits])
    scales, leasts = (each.reshape(by_span) for each in found)
    units, least_units = units_of(scales, _MOST), units_of(leasts, _MOST)
    whole_scales, whole_leasts = (
        in_units(scales, units, _MOST),
        in_units(leasts, least_units, _MOST),
    )
    real_scales = (units[..., None] * whole_scales).reshape(-1)
    real_leasts = (least_units[..., None] * whole_leasts).reshape(-1)
    levels = nearest_levels(columns, real_scales, real_leasts, highest)
    wholes = (whole_scales, whole_leasts)
    return _stored(units, least_units, wholes, levels.astype(np.uint8), bits)


def _stored(
    units: Floats, least_units: Floats, wholes: tuple[Floats, Floats], levels: Bytes, bits: int
) -> Bytes:
    """Join units ``[blocks, 8, spans]``, scales and leasts of each group, and levels."""
    blocks, _, num_spans = units.shape
    scales, leasts = (each.astype(np.uint8).transpose(0, 2, 3, 1) for each in wholes)
    nibbles = (scales[:, :, 4:] & _FOUR) | (leasts[:, :, 4:] & _FOUR) << np.uint8(4)
    lower = [each[:, :, :4] | each[:, :, 4:] >> np.uint8(4) << np.uint8(6)
             for each in (scales, leasts)]  # fmt: skip
    heads = [
        np.ascontiguousarray(each.astype(np.float16).transpose(0, 2, 1)).view(np.uint8)
        for each in (units, least_units)
    ]
    # Columns in a quad, of a block of rows, of pairs of groups.
    quads = levels.reshape(-1, QUAD, blocks, ROW_BLOCK, num_spans, SPAN_GROUPS // 2, 2)
    pairs = quads[..., 0] & _FOUR | quads[..., 1] << np.uint8(4)
    vectors = np.ascontiguousarray(pairs.transpose(2, 4, 5, 0, 3, 1))
    if bits == 5:
        fifths = np.bitwise_or.reduce(quads >> np.uint8(4) << _FIFTHS, axis=(5, 6))
        fifths = fifths.transpose(2, 4, 0, 3, 1)[:, :, :, None]
        vectors = np.concatenate([vectors.swapaxes(2, 3), fifths], axis=3)
    parts = [*heads, *lower, nibbles, vectors]
    return np.concatenate([each.reshape(blocks, num_spans, -1) for each in parts], axis=2).reshape(
        -1
    )


def unpack_spans(data: Bytes, rows: int, columns: int, bits: int = 4) -> Floats:
    """Return the weights that the bytes of a matrix stand for."""
    num_spans = -(-columns // SPAN)
    span_bytes = HEAD_BYTES + ROW_BLOCK * SPAN * bits // 8
    spans = data.reshape(-1, num_spans, span_bytes)
    units = np.ascontiguousarray(spans[..., : 4 * ROW_BLOCK]).view(np.float16).astype(np.float32)
    units = units.reshape(-1, num_spans, 2, 1, ROW_BLOCK)
    packed = spans[..., 4 * ROW_BLOCK : HEAD_BYTES].reshape(len(spans), num_spans, 3, 4, ROW_BLOCK)
    scales, leasts, nibbles = (packed[:, :, part] for part in range(3))
    steps, lowest = (
        units[:, :, place] * np.concatenate([lower & _SIX, _joined(lower, four)], axis=2)
        for place, (lower, four) in enumerate(
            ((scales, nibbles & _FOUR), (leasts, nibbles >> np.uint8(4)))
        )
    )
    levels = _levels(spans[..., HEAD_BYTES:], bits).astype(np.float32)
    shape = (len(spans), num_spans * SPAN_GROUPS)
    quads = levels.reshape(*shape, 8, ROW_BLOCK, QUAD)
    quads = quads * steps.reshape(*shape, 1, ROW_BLOCK, 1)
    return in_rows(quads - lowest.reshape(*shape, 1, ROW_BLOCK, 1), rows, columns)


def _levels(vectors: Bytes, bits: int) -> Bytes:
    """Return levels ``[blocks, spans, pairs of groups, 2, quads, 8, 4]``."""
    shape = (*vectors.shape[:2], 4, 8) if bits == 4 else (*vectors.shape[:2], 8, 5)
    vectors = vectors.reshape(*shape, ROW_BLOCK, QUAD)
    pairs = vectors if bits == 4 else vectors[:, :, :, :4].swapaxes(2, 3)
    levels = np.stack([pairs & _FOUR, pairs >> np.uint8(4)], axis=3)
    if bits == 4:
        return levels
    fifths = vectors[:, :, None, None, :, 4] >> _FIFTHS[..., None, None, None] & np.uint8(1)
    five: Bytes = levels | fifths << np.uint8(4)
    return five


def _joined(lower: Bytes, four: Bytes) -> Bytes:
    """Return six bits: four, and above them the upper two of another byte."""
    joined: Bytes = four | lower >> np.uint8(2) & np.uint8(0x30)
    return joined
