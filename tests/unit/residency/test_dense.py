import math
import struct
from collections.abc import Iterator

import pytest
import torch

from runtime.device.simulated import SimulatedDevice
from runtime.errors import CancelledError, LarderError
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import WeightFormat
from runtime.residency.dense import DensePart
from runtime.spec.footprint import dense_bytes
from runtime.spec.tensors import TensorEntry
from tests.support.dictionary_store import DictionaryStore

NORM = TensorEntry("norm", "file", 0, 6, WeightFormat.BF16, (3,))
BIAS = TensorEntry("bias", "file", 6, 8, WeightFormat.F32, (2,))
MATRIX = TensorEntry("matrix", "file", 14, 12, WeightFormat.F16, (2, 3))
ENTRIES = {entry.name: entry for entry in (NORM, BIAS, MATRIX)}
CONTENT = {
    "norm": b"".join(struct.pack("<f", value)[2:] for value in (1.0, -2.0, 0.5)),
    "bias": struct.pack("<2f", 0.25, 8.0),
    "matrix": struct.pack("<6e", 1, 2, 3, 4, 5, 6),
}


class TensorStore(DictionaryStore):
    """A store that has the three tensors above."""

    def __init__(self) -> None:
        super().__init__()
        self.most_bytes = 0
        """The largest place that was to be filled at once."""

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        self.most_bytes = max(self.most_bytes, len(target))
        target[:] = CONTENT[entry.name]

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        self.most_bytes = max(self.most_bytes, len(room))
        data = CONTENT[entry.name]
        for begin in range(0, len(data), len(room)):
            piece = data[begin : begin + len(room)]
            room[: len(piece)] = piece
            yield room[: len(piece)]


def ignore_progress(done_bytes: int, total_bytes: int) -> None:
    assert 0 <= done_bytes <= total_bytes == 26


def test_dense_part_vectors_become_f32_and_matrices_stay_as_stored() -> None:
    ledger = Ledger(1_000_000)
    part = DensePart(ledger, ENTRIES)
    part.read(TensorStore(), ignore_progress)
    matrix = part.matrix("matrix")

    assert part.vector("norm").tolist() == [1.0, -2.0, 0.5]
    assert part.vector("bias").tolist() == [0.25, 8.0]
    assert part.vector("norm").dtype is torch.float32
    assert (matrix.format, matrix.rows, matrix.columns) == (WeightFormat.F16, 2, 3)
    assert bytes(matrix.data.tolist()) == CONTENT["matrix"]
    assert ledger.by_kind()[MemoryPart.DENSE] == dense_bytes(ENTRIES.values())
    del matrix
    part.close()
    assert ledger.held_bytes == 0


def test_dense_part_comes_to_a_device_in_pieces_and_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.residency.dense.PIECE_BYTES", 8)
    device = SimulatedDevice("simulated:0", "a card", 1_000_000, 1e12)
    ledger, store = Ledger(1_000_000), TensorStore()
    part = DensePart(ledger, ENTRIES, device)
    part.read(store, ignore_progress)

    assert part.vector("norm").tolist() == [1.0, -2.0, 0.5]
    assert part.vector("bias").tolist() == [0.25, 8.0]
    assert bytes(part.matrix("matrix").data.tolist()) == CONTENT["matrix"]
    assert store.most_bytes == 8
    assert ledger.held_bytes == 0
    part.close()
    device.close()


def test_dense_part_finds_no_number_in_a_later_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.residency.dense.PIECE_BYTES", 4)
    monkeypatch.setitem(CONTENT, "matrix", struct.pack("<6e", 1, 2, 3, 4, 5, math.nan))
    device = SimulatedDevice("simulated:0", "a card", 1_000_000, 1e12)
    part = DensePart(Ledger(1_000_000), ENTRIES, device)

    with pytest.raises(LarderError) as refused:
        part.read(TensorStore(), ignore_progress)

    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert refused.value.parameters == {"place": "The matrix matrix in file"}
    part.close()
    device.close()


def test_dense_part_unknown_name_is_a_missing_tensor() -> None:
    part = DensePart(Ledger(1_000_000), ENTRIES)

    with pytest.raises(LarderError) as missing:
        part.matrix("router")

    assert missing.value.code is ErrorCode.TENSOR_MISSING
    assert missing.value.parameters["tensor"] == "router"
    part.close()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("norm", b"\x80\x3f\x80\x7f\x80\x3f"),
        ("bias", struct.pack("<2f", math.nan, 1.0)),
        ("matrix", struct.pack("<6e", 1, 2, 3, 4, 5, -math.inf)),
    ],
)
def test_dense_part_names_a_tensor_that_holds_no_number(
    monkeypatch: pytest.MonkeyPatch, name: str, data: bytes
) -> None:
    monkeypatch.setitem(CONTENT, name, data)
    part = DensePart(Ledger(1_000_000), ENTRIES)

    with pytest.raises(LarderError) as refused:
        part.read(TensorStore(), ignore_progress)

    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert refused.value.parameters == {"place": f"The matrix {name} in file"}
    part.close()


def test_dense_part_read_ends_where_progress_raises() -> None:
    part = DensePart(Ledger(1_000_000), ENTRIES)

    def stop(done_bytes: int, total_bytes: int) -> None:
        if done_bytes:
            raise CancelledError

    with pytest.raises(CancelledError):
        part.read(TensorStore(), stop)

    part.close()
