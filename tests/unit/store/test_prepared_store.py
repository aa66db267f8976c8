"""Prepared copies that are damaged, incomplete or of another model."""

import dataclasses
from pathlib import Path

import pytest

from runtime.errors import LarderError, report_of
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import MANIFEST_NAME, Manifest, read_manifest, write_manifest
from runtime.prepare.prepare import prepare_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import PAGE_BYTES, ExpertId
from runtime.store import checksum
from runtime.store.checkpoint import CheckpointStore
from runtime.store.open import open_store
from runtime.store.prepared import SAMPLE_EVERY, PreparedStore
from tests.support.checkpoint_folders import TinyModel, shard_name, write_checkpoint

LAYER = "experts-00002.safetensors"


@pytest.fixture
def inspection(tmp_path: Path) -> Inspection:
    return inspect_folder(str(write_checkpoint(tmp_path / "m", TinyModel(num_layers=3))))


@pytest.fixture
def copy(inspection: Inspection, tmp_path: Path) -> Path:
    made = prepare_model(inspection, WeightFormat.Q8_G32, str(tmp_path / "copy"))
    return Path(made.folder)


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def refusal(folder: Path, fingerprint: str = "") -> LarderError:
    with pytest.raises(LarderError) as caught:
        PreparedStore(folder, fingerprint)
    return caught.value


def test_prepared_store_record_damage_is_found_on_the_first_read(copy: Path) -> None:
    store = PreparedStore(copy)
    record = store.layout.record_bytes
    size = (copy / LAYER).stat().st_size
    offset = size - 3 * record
    flip(copy / LAYER, offset + 5)
    with pytest.raises(LarderError) as caught:
        store.read_expert(ExpertId(2, 5), memoryview(bytearray(record)))
    assert caught.value.code is ErrorCode.STORE_DAMAGED
    assert caught.value.parameters == {
        "file": str(copy / LAYER),
        "offset_bytes": offset,
        "part": "layer 2, expert 5",
    }
    store.read_expert(ExpertId(2, 4), memoryview(bytearray(record)))
    store.close()


def count_checks(monkeypatch: pytest.MonkeyPatch, num_wrong: int = 0) -> list[int]:
    """Return the sizes of what is checked from now on; the first sums come out wrong."""
    checks: list[int] = []
    whole = checksum.crc32

    def counted(data: memoryview) -> int:
        checks.append(len(data))
        return whole(data) ^ (len(checks) <= num_wrong)

    monkeypatch.setattr(checksum, "crc32", counted)
    return checks


def test_prepared_store_reads_once_more_before_it_gives_up(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PreparedStore(copy)
    buffer = memoryview(bytearray(store.layout.record_bytes))
    checks = count_checks(monkeypatch, num_wrong=1)
    store.read_expert(ExpertId(0, 0), buffer)
    assert store.num_bytes_read == 2 * store.layout.record_bytes
    store.read_expert(ExpertId(0, 0), buffer)
    assert len(checks) == 2
    store.close()


def test_prepared_store_later_reads_are_sampled(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PreparedStore(copy)
    buffer = memoryview(bytearray(store.layout.record_bytes))
    checks = count_checks(monkeypatch)
    experts = [ExpertId(layer, number) for layer in range(3) for number in range(4)]
    for expert in experts:
        store.read_expert(expert, buffer)
    assert checks == [len(buffer)] * len(experts)
    for number in range(3 * SAMPLE_EVERY):
        store.read_expert(experts[number % len(experts)], buffer)
    assert len(checks) == len(experts) + 3
    store.close()


def test_prepared_store_damage_after_the_first_read_is_found_by_a_sample(copy: Path) -> None:
    store = PreparedStore(copy)
    buffer = memoryview(bytearray(store.layout.record_bytes))
    store.read_expert(ExpertId(2, 5), buffer)
    flip(copy / LAYER, (copy / LAYER).stat().st_size - 3 * len(buffer) + 5)
    for _ in range(SAMPLE_EVERY - 1):
        store.read_expert(ExpertId(2, 5), buffer)
    with pytest.raises(LarderError) as caught:
        store.read_expert(ExpertId(2, 5), buffer)
    assert caught.value.parameters["part"] == "layer 2, expert 5"
    with pytest.raises(LarderError):
        store.read_expert(ExpertId(2, 5), buffer)
    store.close()


def test_prepared_store_dense_damage_names_the_tensor(copy: Path) -> None:
    store = PreparedStore(copy)
    entry = store.dense_tensors["model.norm.weight"]
    flip(Path(entry.file), entry.offset_bytes)
    with pytest.raises(LarderError) as caught:
        store.read_tensor(entry, memoryview(bytearray(entry.num_bytes)))
    assert caught.value.code is ErrorCode.STORE_DAMAGED
    assert caught.value.parameters["part"] == "the matrix model.norm.weight"
    assert "(the matrix model.norm.weight)" in sentence(report_of(caught.value))
    store.close()


def test_prepared_store_damage_is_found_after_the_last_piece(copy: Path) -> None:
    store = PreparedStore(copy)
    entry = store.dense_tensors["model.norm.weight"]
    flip(Path(entry.file), entry.offset_bytes)
    pieces = store.tensor_pieces(entry, memoryview(bytearray(7)))
    with pytest.raises(LarderError) as caught:
        assert sum(len(piece) for piece in pieces) == entry.num_bytes
    assert caught.value.code is ErrorCode.STORE_DAMAGED
    store.close()


def test_prepared_records_begin_on_pages(copy: Path) -> None:
    store = PreparedStore(copy)
    entries = [entry for entry, _ in store._records.values()]
    assert len(entries) == 24
    assert all(entry.offset_bytes % PAGE_BYTES == 0 for entry in entries)
    assert all(entry.num_bytes == store.layout.record_bytes for entry in entries)
    store.close()


def test_prepared_store_without_manifest_is_not_prepared(copy: Path) -> None:
    (copy / MANIFEST_NAME).unlink()
    assert refusal(copy).code is ErrorCode.NOT_PREPARED


def test_prepared_store_of_another_checkpoint_is_refused(copy: Path) -> None:
    error = refusal(copy, "another")
    assert error.code is ErrorCode.STORE_INVALID
    assert "another version" in str(error.parameters["reason"])


@pytest.mark.parametrize("name", [LAYER, "dense.safetensors"])
def test_prepared_store_with_missing_or_cut_file_names_it(copy: Path, name: str) -> None:
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-1])
    error = refusal(copy)
    assert error.code is ErrorCode.STORE_INVALID
    assert name in str(error.parameters["reason"])
    (copy / name).unlink()
    assert "missing" in str(refusal(copy).parameters["reason"])
    (copy / name).mkdir()
    assert refusal(copy).code is ErrorCode.STORE_INVALID
    assert f"{name}: it is a folder" in str(refusal(copy).parameters["reason"])


def test_prepared_store_with_other_files_than_its_manifest_is_refused(copy: Path) -> None:
    manifest = read_manifest(copy)
    layer = manifest.layers[2]
    short = dataclasses.replace(layer, checksums=layer.checksums[:-1])
    sized = dataclasses.replace(layer, size_bytes=1)
    for changed, words in (
        (dataclasses.replace(manifest, record_bytes=PAGE_BYTES), "another size"),
        (dataclasses.replace(manifest, hidden_size=640), "another size"),
        (dataclasses.replace(manifest, num_experts=9), "number of experts"),
        (dataclasses.replace(manifest, layers={2: short}), "number of experts"),
        (dataclasses.replace(manifest, layers={2: sized}), "another size"),
        (dataclasses.replace(manifest, layers={1: layer}), "something else"),
        (dataclasses.replace(manifest, dense=layer), "numbers of type U8"),
        (
            dataclasses.replace(manifest, dense=dataclasses.replace(manifest.dense, checksums=[])),
            "number of tensors",
        ),
    ):
        put(copy, changed)
        error = refusal(copy)
        assert error.code is ErrorCode.STORE_INVALID
        assert words in str(error.parameters["reason"])


def put(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST_NAME).write_bytes(write_manifest(manifest))


def test_open_store_chooses_by_folder(inspection: Inspection, copy: Path) -> None:
    for folder in ("", inspection.report.folder):
        published = open_store(inspection, folder)
        assert isinstance(published, CheckpointStore)
        published.close()
    mine = open_store(inspection, str(copy))
    assert isinstance(mine, PreparedStore)
    mine.close()


def test_checkpoint_store_of_broken_model_is_refused(inspection: Inspection) -> None:
    (Path(inspection.report.folder) / shard_name(1, 4)).unlink()
    broken = inspect_folder(inspection.report.folder)
    with pytest.raises(LarderError) as caught:
        CheckpointStore(broken)
    assert caught.value.parameters["reason"] == ErrorCode.SHARD_MISSING


def test_prepared_store_a_large_record_is_read_in_halves(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PreparedStore(copy)
    size = store.layout.record_bytes
    whole, halved = memoryview(bytearray(size)), memoryview(bytearray(size))
    assert store.halved(ExpertId(2, 5), halved) is None
    monkeypatch.setattr("runtime.store.prepared.MIN_HALVED_BYTES", 1)
    store.read_expert(ExpertId(2, 5), whole)
    read = store.halved(ExpertId(2, 5), halved)
    assert read is not None
    read.read(1)
    assert bytes(halved[: size // 4]) == bytes(size // 4)
    read.read(0)
    read.check()
    assert halved == whole
    assert store.num_bytes_read == 2 * size
    store.close()


def test_prepared_store_damage_is_found_in_halves(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.store.prepared.MIN_HALVED_BYTES", 1)
    store = PreparedStore(copy)
    size = store.layout.record_bytes
    flip(copy / LAYER, (copy / LAYER).stat().st_size - 3 * size + 5)
    read = store.halved(ExpertId(2, 5), memoryview(bytearray(size)))
    assert read is not None
    read.read(0)
    read.read(1)
    with pytest.raises(LarderError) as caught:
        read.check()
    assert caught.value.code is ErrorCode.STORE_DAMAGED
    assert caught.value.parameters["part"] == "layer 2, expert 5"
    store.close()
