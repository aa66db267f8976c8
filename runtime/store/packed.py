"""Matrices that were published in MXFP4, as records hold them. Pure on arrays.

Published: blocks ``[rows, groups, 16]``, byte ``i`` with the columns ``2i`` and ``2i + 1`` of its
group in its low and high half; scales ``[rows, groups]`` apart from them. docs/formats.md draws a
record, in which byte ``i`` of a group holds the columns ``i`` and ``i + 16``.
"""

import numpy as np
import numpy.typing as npt

from runtime.spec.tensors import (
    GROUP_SIZE,
    LEAST_EXPONENT,
    MOST_EXPONENT,
    QUAD,
    ROW_BLOCK,
    TensorEntry,
)
from runtime.store.not_finite import not_finite

Bytes = npt.NDArray[np.uint8]

_BLOCK_BYTES = GROUP_SIZE // 2
"""What the weights of one group take."""
_LOW_HALVES = np.uint64(0x0F0F0F0F0F0F0F0F)


def unpack_published(
    blocks: bytes | bytearray, scales: bytes | bytearray, entry: TensorEntry, target: memoryview
) -> None:
    """Fill ``target`` with the matrix that ``entry`` names in a block and the block's scales.

    Raises ``LarderError`` with ``WEIGHTS_NOT_FINITE`` if a scale stands for no number.
    """
    weave = entry.weave
    assert weave is not None
    rows = slice(weave.first_row, None, weave.row_step)
    weights = np.frombuffer(blocks, np.uint8).reshape(weave.rows, -1, _BLOCK_BYTES)[rows]
    exponents = np.frombuffer(scales, np.uint8).reshape(weave.rows, -1)[rows]
    try:
        record = record_of_published(weights, exponents)
    except ValueError as cause:
        assert entry.scales is not None
        raise not_finite(entry.scales, str(cause)) from cause
    np.frombuffer(target, np.uint8)[:] = record


def record_of_published(blocks: Bytes, exponents: Bytes) -> Bytes:
    """Return a published matrix as a record holds it, bit for bit the same weights.

    Exponents are biased by 127. Raises ``ValueError`` if one stands for no number or for weights
    outside the range of f32.
    """
    if exponents.max() > MOST_EXPONENT:
        raise ValueError(f"scale {exponents.max()}, expected at most {MOST_EXPONENT}")
    rows, num_groups, _ = blocks.shape
    num_blocks = -(-rows // ROW_BLOCK)
    record = np.zeros((num_blocks, num_groups, ROW_BLOCK * (1 + _BLOCK_BYTES)), np.uint8)
    scales = _whole_blocks(exponents).reshape(num_blocks, ROW_BLOCK, num_groups)
    record[..., :ROW_BLOCK] = np.where(scales < LEAST_EXPONENT, 0, scales).transpose(0, 2, 1)
    # Four neighbouring bytes move together.
    quads = _whole_blocks(_paired(blocks)).view(np.uint32)
    quads = quads.reshape(num_blocks, ROW_BLOCK, num_groups, -1).transpose(0, 2, 3, 1)
    places = record.view(np.uint32)[..., ROW_BLOCK // QUAD :]
    places.reshape(num_blocks, num_groups, -1, ROW_BLOCK)[:] = quads
    return record.reshape(-1)


def _paired(blocks: Bytes) -> Bytes:
    """Return bytes with the columns ``i`` and ``i + 16`` of a group in their halves."""
    # Eight bytes at a time: the columns 0 to 15 of a group, then 16 to 31.
    eights = np.ascontiguousarray(blocks).view(np.uint64)
    first, second = eights[..., 0], eights[..., 1]
    even = (first & _LOW_HALVES) | ((second & _LOW_HALVES) << np.uint64(4))
    odd = ((first >> np.uint64(4)) & _LOW_HALVES) | (second & ~_LOW_HALVES)
    paired = np.empty(blocks.shape, np.uint8)
    flat = paired.reshape(-1)
    flat[::2] = even.view(np.uint8).reshape(-1)
    flat[1::2] = odd.view(np.uint8).reshape(-1)
    return paired


def _whole_blocks(array: Bytes) -> Bytes:
    """Return an array with its rows filled up with zeros to whole row blocks."""
    missing = -len(array) % ROW_BLOCK
    if not missing:
        return array
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), np.uint8)])
