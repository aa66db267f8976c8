"""Weights as kernels take them: a format, a shape and bytes that somebody else owns."""

import dataclasses
from collections.abc import Mapping
from typing import Self

import numpy as np
import numpy.typing as npt
import torch

from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertPart, MatrixLayout, matrix_bytes

Bytes = npt.NDArray[np.uint8]

_FORMAT_OF = {
    torch.float32: WeightFormat.F32,
    torch.float16: WeightFormat.F16,
    torch.bfloat16: WeightFormat.BF16,
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """One weight matrix of ``rows`` outputs by ``columns`` inputs, in memory and ready to be used.

    ``data`` is exactly the matrix' bytes and keeps their owner alive; ``address`` is where they
    start, looked up once so that a call costs no look-up.
    """

    format: WeightFormat
    rows: int
    columns: int
    data: Bytes
    address: int

    @classmethod
    def from_buffer(cls, layout: MatrixLayout, buffer: memoryview | Bytes) -> Self:
        """Return the matrix that lies at ``layout.offset_bytes`` of a buffer, without a copy."""
        flat = byte_view(buffer)
        data = flat[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        if len(data) != matrix_bytes(layout.format, layout.rows, layout.columns):
            raise ValueError(f"{len(data)} bytes for {layout}")
        return cls(layout.format, layout.rows, layout.columns, data, data.ctypes.data)

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> Self:
        """Return a contiguous f32, f16 or bf16 tensor of two dimensions as a matrix, not copied."""
        if tensor.dim() != 2 or not tensor.is_contiguous():
            raise ValueError("a matrix is a contiguous tensor of two dimensions")
        data = tensor.detach().view(torch.uint8).reshape(-1).numpy()
        rows, columns = tensor.shape
        return cls(_FORMAT_OF[tensor.dtype], rows, columns, data, data.ctypes.data)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One buffer that holds one expert as an ``ExpertLayout`` says; made once for each slot.

    ``data`` keeps the buffer alive, ``address`` is where it starts (aligned to 64 bytes).
    """

    data: Bytes
    address: int

    @classmethod
    def from_buffer(cls, buffer: memoryview | Bytes) -> Self:
        """Return the slot over a buffer, without a copy."""
        data = byte_view(buffer)
        return cls(data, data.ctypes.data)

    def matrices(self, parts: Mapping[ExpertPart, MatrixLayout]) -> dict[ExpertPart, Matrix]:
        """Return the three matrices in this slot."""
        return {part: Matrix.from_buffer(layout, self.data) for part, layout in parts.items()}


def byte_view(buffer: memoryview | Bytes) -> Bytes:
    """Return a buffer as bytes of one dimension, without a copy."""
    return np.frombuffer(buffer, dtype=np.uint8)
