"""Picking one matrix out of a block that holds it among others. Pure on bytes."""

from collections.abc import Mapping

import numpy as np

from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import TensorEntry

_TYPES: Mapping[WeightFormat, np.dtype[np.uint32] | np.dtype[np.uint16]] = {
    WeightFormat.F32: np.dtype(np.uint32),
    WeightFormat.F16: np.dtype(np.uint16),
    WeightFormat.BF16: np.dtype(np.uint16),
}
"""Numbers are moved, not computed with, so that only their size counts."""


def unweave(block: bytes | bytearray, entry: TensorEntry, target: memoryview) -> None:
    """Fill ``target`` with the matrix that ``entry`` names in ``block``, row by row."""
    weave = entry.weave
    assert weave is not None
    kind = _TYPES[entry.format]
    values = np.frombuffer(block, kind).reshape(weave.rows, weave.columns)
    if weave.is_transposed:
        values = values.T
    picked = values[weave.first_row :: weave.row_step][: entry.shape[0]]
    np.frombuffer(target, kind).reshape(entry.shape)[:] = picked
