"""How levels of six, four, three and two bits lie in the vectors of a group.

A vector is four bytes for each of eight rows: nibbles are two quads in a vector, the first of
columns 0 to 15, the second of columns 16 to 31; two bits are four neighbouring quads in a vector;
single bits are all eight. See docs/formats.md for the drawing.
"""

import numpy as np

from runtime.kernels.quads import Bytes, Floats, halves, paired
from runtime.spec.tensors import GROUP_SIZE, QUAD


def packed_levels(levels: Floats, bits: int) -> Bytes:
    """Return levels ``[32, n]`` of groups as ``[4 * vectors, n]``, vector after vector."""
    if bits == 4:
        return paired(levels)
    whole = levels.astype(np.uint8)
    if bits == 6:
        lower, upper = whole & np.uint8(15), whole >> np.uint8(4)
        return np.concatenate([paired(lower.astype(np.float32)), _twos(upper)])
    if bits == 3:
        return np.concatenate([_twos(whole & np.uint8(3)), _ones(whole >> np.uint8(2))])
    return _twos(whole)


def _twos(levels: Bytes) -> Bytes:
    quads = levels.reshape(2, 4, QUAD, -1)
    joined = quads[:, 0] | quads[:, 1] << np.uint8(2)
    joined |= quads[:, 2] << np.uint8(4)
    joined |= quads[:, 3] << np.uint8(6)
    return joined.reshape(2 * QUAD, -1)


def _ones(levels: Bytes) -> Bytes:
    quads = levels.reshape(GROUP_SIZE // QUAD, QUAD, -1)
    return np.packbits(quads, axis=0, bitorder="little").reshape(QUAD, -1)


def unpacked_levels(vectors: Bytes, bits: int) -> Bytes:
    """Return the levels of ``vectors[blocks, groups, vectors, 8, 4]`` as quads instead."""
    if bits == 4:
        return halves(vectors)
    if bits == 6:
        return halves(vectors[:, :, :4]) | _from_twos(vectors[:, :, 4:]) << np.uint8(4)
    lower = _from_twos(vectors[:, :, :2])
    if bits == 2:
        return lower
    return lower | np.unpackbits(vectors[:, :, 2:], axis=2, bitorder="little") << np.uint8(2)


def _from_twos(vectors: Bytes) -> Bytes:
    quads = [vectors[:, :, v] >> np.uint8(2 * k) & np.uint8(3) for v in range(2) for k in range(4)]
    return np.stack(quads, axis=2)
