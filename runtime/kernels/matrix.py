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
Weights = Bytes | torch.Tensor
"""Bytes in RAM, or uint8 of one dimension on a device."""
CPU = "cpu"

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
    data: Weights
    address: int

    @classmethod
    def from_buffer(cls, layout: MatrixLayout, buffer: memoryview | Weights) -> Self:
        """Return the matrix that lies at ``layout.offset_bytes`` of a buffer, without a copy."""
        flat = byte_view(buffer)
        data = flat[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        if len(data) != matrix_bytes(layout.format, layout.rows, layout.columns):
            raise ValueError(f"{len(data)} bytes for {layout}")
        return cls(layout.format, layout.rows, layout.columns, data, _address_of(data))

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

    ``data`` keeps the buffer alive, ``address`` is where it starts (aligned to 64 bytes), and
    ``device`` says whose memory it is.
    """

    data: Weights
    address: int
    device: str = CPU

    @classmethod
    def from_buffer(cls, buffer: memoryview | Weights, device: str = CPU) -> Self:
        """Return the slot over a buffer, without a copy."""
        data = byte_view(buffer)
        return cls(data, _address_of(data), device)

    def bytes(self) -> torch.Tensor:
        """Return the slot's bytes as a tensor, without a copy."""
        return self.data if isinstance(self.data, torch.Tensor) else torch.from_numpy(self.data)

    def matrices(self, parts: Mapping[ExpertPart, MatrixLayout]) -> dict[ExpertPart, Matrix]:
        """Return the three matrices in this slot."""
        return {part: Matrix.from_buffer(layout, self.data) for part, layout in parts.items()}


def byte_view(buffer: memoryview | Weights) -> Weights:
    """Return a buffer as bytes of one dimension, without a copy."""
    if isinstance(buffer, torch.Tensor):
        return buffer
    return np.frombuffer(buffer, dtype=np.uint8)


def _address_of(data: Weights) -> int:
    return data.data_ptr() if isinstance(data, torch.Tensor) else data.ctypes.data
