"""How the grouped formats interleave levels: quads of four columns, eight rows beside each other.

See docs/formats.md for the drawing.
"""

import numpy as np
import numpy.typing as npt

from runtime.spec.tensors import GROUP_SIZE, ROW_BLOCK

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


def paired(levels: Floats) -> Bytes:
    """Return levels ``[32, n]`` of groups as ``[16, n]``: the first 16 in the low nibbles."""
    low, high = levels.astype(np.uint8).reshape(2, GROUP_SIZE // 2, -1)
    return low | (high << np.uint8(4))


def halves(pairs: Bytes) -> Bytes:
    """Return the levels of ``pairs[blocks, groups, quads, 8, 4]``: low nibbles, then high ones."""
    return np.concatenate([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=2)


def in_rows(quads: Floats, rows: int, columns: int) -> Floats:
    """Return weights ``[blocks, groups, quads, 8, 4]`` as a matrix, without what filled it up."""
    padded = quads.transpose(0, 3, 1, 2, 4).reshape(quads.shape[0] * ROW_BLOCK, -1)
    return np.ascontiguousarray(padded[:rows, :columns])
