"""The dense part of a model: every weight that is not a routed expert, in RAM for the session."""

from collections.abc import Callable, Mapping

import torch

from runtime.errors import LarderError
from runtime.kernels.matrix import Matrix
from runtime.memory.arena import Arena
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import WeightFormat
from runtime.spec.footprint import dense_bytes, dense_tensor_bytes
from runtime.spec.tensors import MatrixLayout, TensorEntry
from runtime.store.base import ExpertStore

ReadProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in total; may raise to stop."""

_TORCH_TYPES = {
    WeightFormat.F32: torch.float32,
    WeightFormat.F16: torch.float16,
    WeightFormat.BF16: torch.bfloat16,
}


class DensePart:
    """All dense tensors in one arena: matrices as stored, vectors turned into f32.

    Threads: made, used and closed by the engine thread.
    """

    def __init__(self, ledger: Ledger, entries: Mapping[str, TensorEntry]) -> None:
        self._entries = dict(entries)
        self._arena = Arena(ledger, MemoryPart.DENSE, 1, dense_bytes(entries.values()))
        self._offsets: dict[str, int] = {}
        offset = 0
        for name, entry in entries.items():
            self._offsets[name] = offset
            offset += dense_tensor_bytes(entry)

    def read(self, store: ExpertStore, progress: ReadProgress) -> None:
        """Read every tensor from the store."""
        total_bytes = sum(entry.num_bytes for entry in self._entries.values())
        done_bytes = 0
        progress(done_bytes, total_bytes)
        for name, entry in self._entries.items():
            if self._is_widened(entry):
                stored = bytearray(entry.num_bytes)
                store.read_tensor(entry, memoryview(stored))
                values = torch.frombuffer(stored, dtype=_TORCH_TYPES[entry.format])
                self.vector(name).copy_(values)
            else:
                store.read_tensor(entry, self._bytes(name, entry.num_bytes))
            done_bytes += entry.num_bytes
            progress(done_bytes, total_bytes)

    def matrix(self, name: str) -> Matrix:
        """Return a tensor of two dimensions as kernels take it."""
        entry = self._entry(name)
        rows, columns = entry.shape
        layout = MatrixLayout(entry.format, rows, columns, 0, entry.num_bytes)
        return Matrix.from_buffer(layout, self._bytes(name, entry.num_bytes))

    def vector(self, name: str) -> torch.Tensor:
        """Return a tensor of one dimension as f32."""
        entry = self._entry(name)
        (length,) = entry.shape
        return torch.frombuffer(self._bytes(name, 4 * length), dtype=torch.float32)

    def close(self) -> None:
        """Give the memory back; may be called twice."""
        self._arena.close()

    def _entry(self, name: str) -> TensorEntry:
        """Return where a tensor lies; raise ``TENSOR_MISSING`` if it does not exist."""
        entry = self._entries.get(name)
        if entry is None:
            raise LarderError(ErrorCode.TENSOR_MISSING, tensor=name, num_missing=1)
        return entry

    def _bytes(self, name: str, num_bytes: int) -> memoryview:
        """Return the bytes of a tensor in the arena."""
        offset = self._offsets[name]
        return self._arena.slot(0)[offset : offset + num_bytes]

    @staticmethod
    def _is_widened(entry: TensorEntry) -> bool:
        """Whether a tensor is turned into f32 while it is read."""
        return len(entry.shape) == 1 and entry.format is not WeightFormat.F32
