"""Matrices that were published in MXFP4, as records hold them. Pure on arrays.

Published: blocks ``[rows, groups, 16]``, byte ``i`` with the columns ``2i`` and ``2i + 1`` of its
group in its low and high half; scales ``[rows, groups]`` apart from them. docs/formats.md draws a
record, in which byte ``i`` of a group holds the columns ``i`` and ``i + 16``.
"""

import numpy as np
import numpy.typing as npt

from runtime.spec.tensors import GROUP_SIZE, TensorEntry
from runtime.store.not_finite import not_finite
from runtime.store.records import fp4_record

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
    return fp4_record(_paired(blocks), exponents)


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
