"""Matrices of GGUF files go straight from where they were read to their slot, in halves too."""

from pathlib import Path
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import ExpertId
from runtime.store import checkpoint, gguf_rows
from runtime.store.bounce import MOST_LENT_BYTES
from runtime.store.checkpoint import CheckpointStore
from runtime.store.files import WeightFiles
from tests.support.mixed_gguf import KINDS, q4_k_m, with_plain, write_mixed

Room = npt.NDArray[np.uint8]


def read(store: CheckpointStore, expert: ExpertId) -> Room:
    room = np.full(store.layout.record_bytes, 7, np.uint8)
    store.read_expert(expert, room.data)
    return room


def plainly(store: CheckpointStore, expert: ExpertId) -> Room:
    """What comes where nothing goes straight to its slot."""
    with mock.patch.object(checkpoint, "repack_into", return_value=False):
        return read(store, expert)


@pytest.mark.parametrize("at_once", [MOST_LENT_BYTES, 4000])
@pytest.mark.parametrize("prefers_direct", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_straight_reads_bring_the_bytes_of_plain_ones(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    prefers_direct: bool,
    at_once: int,
) -> None:
    monkeypatch.setattr(gguf_rows, "MOST_LENT_BYTES", at_once)
    inspection = inspect_folder(str(write_mixed(tmp_path / "m.gguf", KINDS[name])))
    store = CheckpointStore(inspection, prefers_direct=prefers_direct)
    for expert in inspection.experts:
        np.testing.assert_array_equal(read(store, expert), plainly(store, expert))
    store.close()


def test_no_room_between_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspection = inspect_folder(str(write_mixed(tmp_path / "m.gguf", q4_k_m)))
    store = CheckpointStore(inspection)
    monkeypatch.setattr(gguf_rows, "gguf_pieces", mock.Mock(side_effect=AssertionError))
    monkeypatch.setattr(checkpoint, "gguf_pieces", gguf_rows.gguf_pieces)
    read(store, ExpertId(0, 0))
    store.close()


def test_halves_make_the_whole_and_small_or_plain_experts_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspection = inspect_folder(str(write_mixed(tmp_path / "m.gguf", q4_k_m)))
    store = CheckpointStore(inspection)
    expert = ExpertId(2, 1)
    room = np.full(store.layout.record_bytes, 7, np.uint8)
    assert store.halved(expert, room.data) is None, "it is small"
    monkeypatch.setattr(checkpoint, "MIN_HALVED_BYTES", 1)
    for order in ([0, 1], [1, 0]):
        room[:] = 7
        halves = store.halved(expert, room.data)
        assert halves is not None
        halves.read(order[0])
        assert (room != plainly(store, expert)).any(), "a half is no whole"
        halves.read(order[1])
        halves.check()
        np.testing.assert_array_equal(room, plainly(store, expert))
    store.close()
    other = CheckpointStore(inspect_folder(str(write_mixed(tmp_path / "o.gguf", with_plain))))
    kinds = [other.halved(ExpertId(layer, 0), room.data) is None for layer in range(4)]
    assert any(kinds)
    other.close()


def test_scale_that_is_no_number_is_named_by_halves_and_by_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_mixed(tmp_path / "m.gguf", q4_k_m)
    inspection = inspect_folder(str(path))
    expert = ExpertId(0, 1)
    entry = next(iter(inspection.experts[expert].values()))
    content = bytearray(path.read_bytes())
    content[entry.offset_bytes : entry.offset_bytes + 2] = np.array([np.inf], np.float16).tobytes()
    path.write_bytes(content)
    store = CheckpointStore(inspection)
    monkeypatch.setattr(checkpoint, "MIN_HALVED_BYTES", 1)
    room = np.zeros(store.layout.record_bytes, np.uint8)
    with pytest.raises(LarderError) as whole:
        store.read_expert(expert, room.data)
    halves = store.halved(expert, room.data)
    assert halves is not None
    halves.read(0)
    halves.read(1)
    with pytest.raises(LarderError) as halved:
        halves.check()
    assert halved.value.code is whole.value.code
    assert halved.value.parameters == whole.value.parameters
    store.close()


def test_lent_bytes_are_those_of_the_file_up_to_its_end(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 256, 20_001, dtype=np.uint8).tobytes()
    (tmp_path / "w").write_bytes(data)
    path = str(tmp_path / "w")
    for prefers_direct in (True, False):
        files = WeightFiles([path], prefers_direct=prefers_direct)
        for offset, size in ((0, 1), (4095, 2), (5000, 9000), (12_288, 4096), (20_000, 1)):
            with files.lent(path, offset, size) as found:
                assert bytes(found) == data[offset : offset + size]
        with pytest.raises(LarderError) as short, files.lent(path, 20_000, 2):
            pass
        assert short.value.code is ErrorCode.DRIVE_READ_FAILED
        files.close()
        with pytest.raises(LarderError), files.lent(path, 0, 1):
            pass
