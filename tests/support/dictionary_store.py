"""An expert store whose weights lie in dictionaries, for tests without files."""

import threading
from collections.abc import Iterator, Mapping

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertLayout, TensorEntry, expert_layout

TINY_LAYOUT = expert_layout(WeightFormat.F32, 16, 8)


class DictionaryStore:
    """Experts made of one repeated byte each; reads are counted and can be made to fail."""

    def __init__(
        self, layout: ExpertLayout = TINY_LAYOUT, failing: frozenset[ExpertId] = frozenset()
    ) -> None:
        self.layout = layout
        self.failing = failing
        self.read_experts: list[ExpertId] = []
        self.dense_tensors: Mapping[str, TensorEntry] = {}
        self.num_bytes_read = 0
        self.is_direct = False
        self.is_closed = False

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        return self.layout

    def place_of(self, expert: ExpertId) -> tuple[str, int]:
        return f"weights-{expert.layer}", expert.expert * self.layout.record_bytes

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        if expert in self.failing:
            raise LarderError(
                ErrorCode.DRIVE_READ_FAILED, file="weights", offset_bytes=0, reason="broken"
            )
        assert len(target) >= self.layout.record_bytes
        target[: self.layout.record_bytes] = content(expert) * self.layout.record_bytes
        self.read_experts.append(expert)
        self.num_bytes_read += self.layout.record_bytes

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        raise AssertionError(f"no dense tensor {entry.name}")

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        raise AssertionError(f"no dense tensor {entry.name} for {len(room)} bytes")

    def close(self) -> None:
        self.is_closed = True


class GatedStore(DictionaryStore):
    """A store whose reads wait until they may go on."""

    def __init__(self, failing: frozenset[ExpertId] = frozenset()) -> None:
        super().__init__(failing=failing)
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        self.begun.release()
        assert self.gate.wait(30)
        super().read_expert(expert, target)


def content(expert: ExpertId) -> bytes:
    """Return the byte that an expert is made of."""
    return bytes([(expert.layer * 37 + expert.expert + 1) % 256])
