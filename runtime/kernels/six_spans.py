"""Q6_K as a format of kernels: the blocks of GGUF files with eight rows interleaved.

A weight is ``unit * scale * (level - 32)``: levels of six bits, scales of eight with a sign for 16
weights, units in fp16 for 256. See docs/formats.md for the drawing.
"""

import numpy as np

from runtime.kernels.quads import Bytes, Floats, in_rows
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import GROUP_SIZE, QUAD, ROW_BLOCK, SPAN, SPAN_ROW_BYTES

_GROUPS = SPAN // GROUP_SIZE
_HALF = GROUP_SIZE // 2
_UNIT_BYTES, _SCALE_BYTES = 2 * ROW_BLOCK, 2 * _GROUPS * ROW_BLOCK
_HEAD_BYTES = _UNIT_BYTES + _SCALE_BYTES
_OFFSET, _MOST_SCALE = 32, 127
_SHIFTS = (np.arange(4, dtype=np.uint8) * 2).reshape(4, 1, 1, 1)


def pack_six_spans(groups: Floats) -> Bytes:
    """Return ``[blocks, 8, groups, 32]`` weights as stored, columns filled up to whole spans.

    The largest of 16 weights without its sign becomes a level at the end, as far as the scale can
    be told in units.
    """
    missing = -groups.shape[2] % _GROUPS
    groups = np.pad(groups, ((0, 0), (0, 0), (0, missing), (0, 0)))
    blocks = len(groups)
    halves = groups.reshape(blocks, ROW_BLOCK, -1, 2 * _GROUPS, _HALF)
    wanted = np.abs(halves).max(axis=-1) / (_OFFSET - 1)
    units = (wanted.max(axis=-1) / _MOST_SCALE).astype(np.float16)
    scales = np.rint(_quotient(wanted, units.astype(np.float32)[..., None])).clip(0, _MOST_SCALE)
    steps = units.astype(np.float32)[..., None] * scales
    levels = np.rint(_quotient(halves, steps[..., None])).clip(-_OFFSET, _OFFSET - 1) + _OFFSET
    # Of a span: two halves of four groups each, whose vectors have eight quads of all rows.
    by_four = levels.astype(np.uint8).reshape(blocks, ROW_BLOCK, -1, 2, 4, 8, QUAD)
    vectors = by_four.transpose(0, 2, 3, 4, 5, 1, 6)
    fours, twos = vectors & np.uint8(15), vectors >> np.uint8(4) << _SHIFTS
    lower = fours[:, :, :, :2] | fours[:, :, :, 2:] << np.uint8(4)
    upper = np.bitwise_or.reduce(twos, axis=3, keepdims=True)
    threes = np.concatenate([lower, upper], axis=3).swapaxes(3, 4)
    by_group = scales.astype(np.uint8).reshape(blocks, ROW_BLOCK, -1, _GROUPS, 2)
    parts = (
        np.ascontiguousarray(units.transpose(0, 2, 1)).view(np.uint8),
        by_group.transpose(0, 2, 3, 1, 4),
        threes,
    )
    shape = (blocks, units.shape[2], -1)
    return np.concatenate([each.reshape(shape) for each in parts], axis=2).reshape(-1)


def unpack_six_spans(data: Bytes, rows: int, columns: int) -> Floats:
    """Return the weights that the bytes of a matrix stand for."""
    num_spans = -(-columns // SPAN)
    spans = data.reshape(-1, num_spans, ROW_BLOCK * SPAN_ROW_BYTES[WeightFormat.Q6K_G16])
    units = np.ascontiguousarray(spans[..., :_UNIT_BYTES]).view(np.float16).astype(np.float32)
    stored = np.ascontiguousarray(spans[..., _UNIT_BYTES:_HEAD_BYTES]).view(np.int8)
    scales = stored.reshape(len(spans), num_spans, _GROUPS, ROW_BLOCK, 2).astype(np.float32)
    steps = (units[:, :, None, :, None] * scales).transpose(0, 1, 2, 4, 3)
    threes = spans[..., _HEAD_BYTES:].reshape(len(spans), num_spans, 2, 8, 3, ROW_BLOCK, QUAD)
    threes = threes.swapaxes(3, 4)
    lower, twos = threes[:, :, :, :2], threes[:, :, :, 2:]
    fours = np.concatenate([lower & np.uint8(15), lower >> np.uint8(4)], axis=3)
    levels = fours | (twos >> _SHIFTS & np.uint8(3)) << np.uint8(4)
    # Quads of the first 16 columns of a group and of the others.
    levels = levels.reshape(len(spans), num_spans, _GROUPS, 2, 4, ROW_BLOCK, QUAD)
    weights = (levels.astype(np.float32) - _OFFSET) * steps[:, :, :, :, None, :, None]
    quads = weights.reshape(len(spans), num_spans * _GROUPS, 8, ROW_BLOCK, QUAD)
    return in_rows(quads, rows, columns)


def _quotient(values: Floats, steps: Floats) -> Floats:
    """Return values in steps; 0 where a step is 0."""
    shape = np.broadcast_shapes(values.shape, steps.shape)
    return np.divide(values, steps, out=np.zeros(shape, np.float32), where=steps > 0)
