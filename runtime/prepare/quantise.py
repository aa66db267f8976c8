"""One expert from its published format into the format of its record. Pure on arrays."""

from collections.abc import Iterator

import numpy as np

from runtime.kernels.formats import pack, unpack
from runtime.kernels.quads import Bytes, Floats
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import (
    AFFINE_FORMATS,
    ROW_BLOCK,
    ExpertLayout,
    ExpertPart,
    MatrixLayout,
    matrix_bytes,
)

_CHUNK_WEIGHTS = 1 << 17


def convert_rows(source: Bytes, chunk: "Chunk", importance: Floats | None = None) -> Bytes:
    """Return the bytes that the rows of ``chunk`` take in the target format.

    ``source`` is the whole expert as published; ``importance`` as for ``pack``. Equal formats are
    copied bit by bit. Raises ``ValueError`` if a weight is not finite and the target is a quantised
    format.
    """
    plain, target = chunk.source, chunk.target
    before = matrix_bytes(plain.format, chunk.first_row, plain.columns)
    begin = plain.offset_bytes + before
    data = source[begin : begin + matrix_bytes(plain.format, chunk.num_rows, plain.columns)]
    if plain.format is target.format:
        return data
    return pack(target.format, _weights(plain, data, chunk.num_rows), importance)


class Chunk:
    """Some whole row blocks of one matrix: where they are read and where they are written."""

    def __init__(
        self,
        source: MatrixLayout,
        target: MatrixLayout,
        first_row: int,
        num_rows: int,
        part: ExpertPart | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.first_row = first_row
        self.num_rows = num_rows
        self.part = part
        """Which matrix of an expert, if it is of one."""

    @property
    def begin_bytes(self) -> int:
        """Where its bytes begin in the record."""
        before = matrix_bytes(self.target.format, self.first_row, self.target.columns)
        return self.target.offset_bytes + before

    @property
    def num_bytes(self) -> int:
        """What its bytes take in the record."""
        return matrix_bytes(self.target.format, self.num_rows, self.target.columns)


def chunks_of(source: ExpertLayout, target: ExpertLayout) -> Iterator[Chunk]:
    """Yield chunks that cover all weights of an expert once, each small enough to stay in cache."""
    for part in ExpertPart:
        plain, wanted = source[part], target[part]
        rows = max(_CHUNK_WEIGHTS // plain.columns // ROW_BLOCK, 1) * ROW_BLOCK
        for first_row in range(0, plain.rows, rows):
            yield Chunk(plain, wanted, first_row, min(rows, plain.rows - first_row), part)


def matrix_chunks(plain: MatrixLayout, wanted: WeightFormat) -> Iterator[Chunk]:
    """Yield chunks that cover a matrix of plain numbers that lies alone in a buffer."""
    rows, columns = plain.rows, plain.columns
    target = MatrixLayout(wanted, rows, columns, 0, matrix_bytes(wanted, rows, columns))
    step = max(_CHUNK_WEIGHTS // columns // ROW_BLOCK, 1) * ROW_BLOCK
    for first_row in range(0, rows, step):
        yield Chunk(plain, target, first_row, min(step, rows - first_row))


def error_of(wanted: WeightFormat, weights: Floats, importance: Floats) -> float:
    """Return what a format spoils of a matrix, as a part of what the matrix gives.

    That is the square of what packing changes by the square of the weights, each column counted
    as much as what it is multiplied with.
    """
    rows, columns = weights.shape
    changed = unpack(wanted, pack(wanted, weights, importance), rows, columns) - weights
    spoilt = float(np.einsum("rc,rc,c->", changed, changed, importance))
    whole = float(np.einsum("rc,rc,c->", weights, weights, importance))
    return spoilt / whole if whole > 0 else 0.0


def plain_rows(entry_format: WeightFormat, data: Bytes, rows: int, columns: int) -> Floats:
    """Return the weights of some rows of plain numbers."""
    return unpack(entry_format, np.ascontiguousarray(data), rows, columns)


def _weights(plain: MatrixLayout, data: Bytes, num_rows: int) -> Floats:
    if plain.format is WeightFormat.Q4_G32 or plain.format in AFFINE_FORMATS:
        raise ValueError(f"{plain.format} is not a published format")
    return unpack(plain.format, np.ascontiguousarray(data), num_rows, plain.columns)
