"""The dense part of a model: every weight that is not a routed expert, there for the session."""

from collections.abc import Callable, Mapping

import torch

from runtime.device.base import Device, DeviceArena
from runtime.errors import LarderError
from runtime.kernels.matrix import Matrix
from runtime.kernels.tensor_formats import PLAIN_TYPES
from runtime.memory.arena import Arena
from runtime.memory.large_pages import gather
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import WeightFormat
from runtime.residency.finite import is_finite
from runtime.spec.footprint import dense_bytes, dense_tensor_bytes
from runtime.spec.tensors import MatrixLayout, TensorEntry
from runtime.store.base import ExpertStore

PIECE_BYTES = 4 * 1024 * 1024
"""The most of a matrix that lies in RAM on its way to a device."""
ReadProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in total; may raise to stop."""


class DensePart:
    """All dense tensors in one slot: matrices as stored, vectors turned into f32.

    They lie in RAM or on a device; there they come by way of RAM, matrices piece after piece.

    Threads: made, used and closed by the engine thread.
    """

    def __init__(
        self, ledger: Ledger, entries: Mapping[str, TensorEntry], device: Device | None = None
    ) -> None:
        """Take the memory: of the ledger, or of the device if there is one."""
        self._entries = dict(entries)
        self._device = device
        num_bytes = dense_bytes(entries.values())
        self._arena: Arena | DeviceArena = (
            Arena(ledger, MemoryPart.DENSE, 1, num_bytes)
            if device is None
            else device.arena(MemoryPart.DENSE, 1, num_bytes)
        )
        self._offsets: dict[str, int] = {}
        offset = 0
        for name, entry in entries.items():
            self._offsets[name] = offset
            offset += dense_tensor_bytes(entry)

    def read(self, store: ExpertStore, progress: ReadProgress) -> None:
        """Read every tensor from the store.

        Raises ``WEIGHTS_NOT_FINITE`` for one with a value that is not a number.
        """
        total_bytes = sum(entry.num_bytes for entry in self._entries.values())
        done_bytes = 0
        progress(done_bytes, total_bytes)
        for name, entry in self._entries.items():
            self._read_tensor(store, name, entry)
            done_bytes += entry.num_bytes
            progress(done_bytes, total_bytes)
        if isinstance(self._arena, Arena):
            gather([self._arena.span])

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
        return self._bytes(name, 4 * length).view(torch.float32)

    def close(self) -> None:
        """Give the memory back; may be called twice."""
        self._arena.close()

    def _entry(self, name: str) -> TensorEntry:
        """Return where a tensor lies; raise ``TENSOR_MISSING`` if it does not exist."""
        entry = self._entries.get(name)
        if entry is None:
            raise LarderError(ErrorCode.TENSOR_MISSING, tensor=name, num_missing=1)
        return entry

    def _read_tensor(self, store: ExpertStore, name: str, entry: TensorEntry) -> None:
        """Read one tensor to its place, widened if it is a vector."""
        if self._device is None and not self._is_widened(entry):
            place = self._bytes(name, entry.num_bytes)
            store.read_tensor(entry, place.numpy().data)
            _require_finite(entry, place)
            return
        if self._device is not None and not self._is_widened(entry):
            self._send_matrix(store, name, entry, self._device)
            return
        stored = torch.empty(entry.num_bytes, dtype=torch.uint8)
        store.read_tensor(entry, stored.numpy().data)
        _require_finite(entry, stored)
        if self._is_widened(entry):
            stored = stored.view(PLAIN_TYPES[entry.format]).to(torch.float32).view(torch.uint8)
        place = self._bytes(name, stored.numel())
        if self._device is None:
            place.copy_(stored)
        else:
            self._device.copy(stored, place).wait()

    def _send_matrix(
        self, store: ExpertStore, name: str, entry: TensorEntry, device: Device
    ) -> None:
        """Read a matrix to its place on a device."""
        place = self._bytes(name, entry.num_bytes)
        room = torch.empty(min(PIECE_BYTES, entry.num_bytes), dtype=torch.uint8)
        begin = 0
        for piece in store.tensor_pieces(entry, room.numpy().data):
            stored = torch.frombuffer(piece, dtype=torch.uint8)
            _require_finite(entry, stored)
            device.copy(stored, place[begin : begin + len(piece)]).wait()
            begin += len(piece)

    def _bytes(self, name: str, num_bytes: int) -> torch.Tensor:
        """Return the bytes of a tensor in the arena."""
        offset = self._offsets[name]
        return self._arena.tensor(0)[offset : offset + num_bytes]

    @staticmethod
    def _is_widened(entry: TensorEntry) -> bool:
        """Whether a tensor is turned into f32 while it is read."""
        return len(entry.shape) == 1 and entry.format is not WeightFormat.F32


def _require_finite(entry: TensorEntry, stored: torch.Tensor) -> None:
    numbers = PLAIN_TYPES.get(entry.format)
    if numbers is not None and not is_finite(stored.view(numbers)):
        raise LarderError(
            ErrorCode.WEIGHTS_NOT_FINITE, place=f"The matrix {entry.name} in {entry.file}"
        )
