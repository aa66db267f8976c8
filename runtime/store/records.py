"""Matrices in grouped formats, put together as records hold them. Pure on arrays.

docs/formats.md draws what comes out.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import LEAST_EXPONENT, MOST_EXPONENT, QUAD, ROW_BLOCK

Bytes = npt.NDArray[np.uint8]


def interleaved(scales: Sequence[Bytes], weights: Bytes) -> Bytes:
    """Return ``[blocks, groups, bytes]``: of each group the scales of eight rows, then its quads.

    ``weights`` and each of the ``scales`` are ``[rows, groups, bytes]``; begun blocks are filled up
    with zeros.
    """
    rows, num_groups, weight_bytes = weights.shape
    num_blocks = -(-rows // ROW_BLOCK)
    scale_bytes = sum(each.shape[2] for each in scales) * ROW_BLOCK
    record = np.zeros((num_blocks, num_groups, scale_bytes + ROW_BLOCK * weight_bytes), np.uint8)
    begin = 0
    for each in scales:
        by_row = whole_blocks(each).reshape(num_blocks, ROW_BLOCK, num_groups, -1)
        end = begin + ROW_BLOCK * each.shape[2]
        by_group = by_row.transpose(0, 2, 1, 3).reshape(num_blocks, num_groups, -1)
        record[..., begin:end] = by_group
        begin = end
    # Four neighbouring bytes move together.
    quads = whole_blocks(np.ascontiguousarray(weights)).view(np.uint32)
    quads = quads.reshape(num_blocks, ROW_BLOCK, num_groups, -1).transpose(0, 2, 3, 1)
    places = record.view(np.uint32)[..., scale_bytes // QUAD :]
    places.reshape(num_blocks, num_groups, -1, ROW_BLOCK)[:] = quads
    return record


def fp4_record(pairs: Bytes, exponents: Bytes) -> Bytes:
    """Return a matrix in MXFP4, the columns ``i`` and ``i + 16`` of a group in a byte of it.

    Exponents are biased by 127. Raises ``ValueError`` if one stands for no number or for weights
    outside the range of f32.
    """
    if exponents.max() > MOST_EXPONENT:
        raise ValueError(f"scale {exponents.max()}, expected at most {MOST_EXPONENT}")
    used = np.where(exponents < LEAST_EXPONENT, np.uint8(0), exponents)
    return interleaved([used[..., None]], pairs).reshape(-1)


def span_record(blocks: Bytes) -> Bytes:
    """Return a matrix in ``q4k_g32`` of blocks of Q4_K ``[rows, spans, 144]``, bit for bit."""
    by_span = _by_span(blocks)
    units = [by_span[..., :2], by_span[..., 2:4]]
    scales = by_span[..., 4:16].swapaxes(2, 3)
    quads = by_span[..., 16:].reshape(*by_span.shape[:3], -1, QUAD).swapaxes(2, 3)
    return _joined(by_span, [*units, scales, quads])


def five_span_record(blocks: Bytes) -> Bytes:
    """Return a matrix in ``q5k_g32`` of blocks of Q5_K ``[rows, spans, 176]``, bit for bit."""
    by_span = _by_span(blocks)
    units = [by_span[..., :2], by_span[..., 2:4]]
    scales = by_span[..., 4:16].swapaxes(2, 3)
    # In a file the fifth bits stand first; here behind the lower bits of the same columns.
    lower = by_span[..., 48:].reshape(*by_span.shape[:3], 4, 8, QUAD)
    fifths = by_span[..., 16:48].reshape(*by_span.shape[:3], 1, 8, QUAD)
    quads = np.concatenate([lower, fifths], axis=3).transpose(0, 1, 4, 3, 2, 5)
    return _joined(by_span, [*units, scales, quads])


def six_span_record(blocks: Bytes) -> Bytes:
    """Return a matrix in ``q6k_g16`` of blocks of Q6_K ``[rows, spans, 210]``, bit for bit."""
    by_span = _by_span(blocks)
    # Of each half of the columns: lower bits of two runs and the upper ones of both.
    lower = by_span[..., :128].reshape(*by_span.shape[:3], 2, 64)
    upper = by_span[..., 128:192].reshape(*by_span.shape[:3], 2, 32)
    runs = np.concatenate([lower, upper], axis=4)
    return _half_span_record(by_span, (208,), by_span[..., 192:208], runs)


def three_span_record(blocks: Bytes) -> Bytes:
    """Return a matrix in ``q3k_g16`` of blocks of Q3_K ``[rows, spans, 110]``."""
    scales = q3_k_scales(blocks[..., 96:108]).view(np.uint8)
    # Lower two bits of the columns, then the upper ones of all.
    parts = [blocks[..., 32:96], blocks[..., :32], scales, blocks[..., 108:]]
    by_span = _by_span(np.concatenate(parts, axis=2))
    return _half_span_record(by_span, (112,), by_span[..., 96:112], by_span[..., None, :96])


def two_span_record(blocks: Bytes) -> Bytes:
    """Return a matrix in ``q2k_g16`` of blocks of Q2_K ``[rows, spans, 84]``, bit for bit."""
    by_span = _by_span(blocks)
    return _half_span_record(by_span, (80, 82), by_span[..., :16], by_span[..., None, 16:80])


def q3_k_scales(packed: Bytes) -> npt.NDArray[np.int8]:
    """Return the 16 scales of blocks of Q3_K, of six bits minus 32, which take ``[..., 12]``."""
    fours = np.concatenate(
        [packed[..., :8] & np.uint8(15), packed[..., :8] >> np.uint8(4)], axis=-1
    )
    shifts = (np.arange(4, dtype=np.uint8) * 2)[:, None]
    twos = packed[..., None, 8:] >> shifts & np.uint8(3)
    six = fours | twos.reshape(fours.shape) << np.uint8(4)
    scales: npt.NDArray[np.int8] = (six - np.uint8(32)).view(np.int8)
    return scales


def _half_span_record(by_span: Bytes, units_at: Sequence[int], scales: Bytes, runs: Bytes) -> Bytes:
    """Join units, scales ``[..., 8, 16]`` and levels ``[..., 8, runs of bundles, bytes]``."""
    units = [by_span[..., at : at + 2] for at in units_at]
    pairs = scales.reshape(*by_span.shape[:3], -1, 2).swapaxes(2, 3)
    vectors = runs.reshape(*runs.shape[:4], -1, 8, QUAD).transpose(0, 1, 3, 5, 4, 2, 6)
    return _joined(by_span, [*units, pairs, vectors])


def _by_span(blocks: Bytes) -> Bytes:
    """Return blocks ``[rows, spans, bytes]`` as ``[row blocks, spans, 8, bytes]``."""
    in_blocks = whole_blocks(blocks).reshape(-1, ROW_BLOCK, *blocks.shape[1:])
    return in_blocks.transpose(0, 2, 1, 3)


def _joined(by_span: Bytes, parts: Sequence[Bytes]) -> Bytes:
    """Return parts of spans one behind another."""
    shape = (*by_span.shape[:2], -1)
    return np.concatenate([each.reshape(shape) for each in parts], axis=2)


def whole_blocks(array: Bytes) -> Bytes:
    """Return an array with its rows filled up with zeros to whole row blocks."""
    missing = -len(array) % ROW_BLOCK
    if not missing:
        return array
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), np.uint8)])


SPAN_RECORDS: Mapping[WeightFormat, Callable[[Bytes], Bytes]] = {
    WeightFormat.Q4K_G32: span_record,
    WeightFormat.Q5K_G32: five_span_record,
    WeightFormat.Q6K_G16: six_span_record,
    WeightFormat.Q3K_G16: three_span_record,
    WeightFormat.Q2K_G16: two_span_record,
}
"""What makes records of blocks of 256 weights ``[rows, spans, bytes]``."""
