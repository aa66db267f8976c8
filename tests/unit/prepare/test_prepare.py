"""Writing prepared copies: their bytes, and what is refused before or while writing."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from runtime.errors import CancelledError
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME, read_manifest
from runtime.inspect.prepared import find_prepared
from runtime.kernels.formats import pack, unpack
from runtime.prepare import prepare, weight_file
from runtime.prepare.journal import is_unfinished, kept_bytes
from runtime.prepare.lock import LOCK_NAME
from runtime.prepare.prepare import prepare_model
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import PAGE_BYTES, ExpertPart
from runtime.store.checkpoint import CheckpointStore
from runtime.store.prepared import PreparedStore
from tests.support.checkpoint_folders import (
    TinyModel,
    write_checkpoint,
)

Q8 = WeightFormat.Q8_G32


@pytest.fixture
def source(tmp_path: Path) -> Inspection:
    model = TinyModel(num_layers=3, num_experts=4, model_type="qwen2_moe", expert_width=40)
    return inspect_folder(str(write_checkpoint(tmp_path / "m", model)))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "copy"


class StopAfter:
    """A wish to stop that comes with the n-th look."""

    def __init__(self, num_checks: int) -> None:
        self.left = num_checks

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CancelledError


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != LOCK_NAME}


@pytest.mark.parametrize("weight_format", [Q8, WeightFormat.Q4_G32, WeightFormat.BF16])
def test_prepare_records_hold_each_matrix_in_the_format(
    source: Inspection, target: Path, weight_format: WeightFormat
) -> None:
    copy = prepare_model(source, weight_format, str(target))
    published, store = CheckpointStore(source), PreparedStore(target, source.report.fingerprint)
    before = bytearray(published.layout.record_bytes)
    record = bytearray(store.layout.record_bytes)
    for expert in source.experts:
        published.read_expert(expert, memoryview(before))
        store.read_expert(expert, memoryview(record))
        used = 0
        for part in ExpertPart:
            old, new = published.layout[part], store.layout[part]
            assert new.format is weight_format
            data = np.frombuffer(before, np.uint8, old.num_bytes, old.offset_bytes)
            weights = unpack(old.format, data, old.rows, old.columns)
            place = slice(new.offset_bytes, new.offset_bytes + new.num_bytes)
            assert bytes(pack(weight_format, weights)) == record[place]
            assert record[used : new.offset_bytes] == bytes(new.offset_bytes - used)
            used = new.offset_bytes + new.num_bytes
        assert record[used:] == bytes(len(record) - used)
    for name, entry in source.tensors.items():
        one, two = bytearray(entry.num_bytes), bytearray(entry.num_bytes)
        published.read_tensor(entry, memoryview(one))
        store.read_tensor(store.dense_tensors[name], memoryview(two))
        assert one == two
    assert copy.size_bytes == sum(file.stat().st_size for file in target.glob("*.safetensors"))
    published.close()
    store.close()


def test_prepare_files_are_ordinary_safetensors_with_paged_records(
    source: Inspection, target: Path
) -> None:
    prepare_model(source, Q8, str(target))
    for file in target.glob("*.safetensors"):
        length = int.from_bytes(file.read_bytes()[:8], "little")
        assert (8 + length) % PAGE_BYTES == 0
        if file.name.startswith("experts"):
            with safe_open(file, "np") as opened:
                names = list(opened.keys())
                assert len(names) == 4
                assert {opened.get_tensor(name).size % PAGE_BYTES for name in names} == {0}


def test_prepare_makes_the_same_bytes_every_time(source: Inspection, tmp_path: Path) -> None:
    prepare_model(source, WeightFormat.Q4_G32, str(tmp_path / "one"))
    prepare_model(source, WeightFormat.Q4_G32, str(tmp_path / "two"))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_prepare_copies_what_makes_the_folder_complete(source: Inspection, target: Path) -> None:
    prepare_model(source, Q8, str(target))
    for name in ("config.json", "generation_config.json", "tokenizer.json", "README.md"):
        original = Path(source.report.folder) / name
        assert (target / name).read_bytes() == original.read_bytes()
    assert not is_unfinished(target)
    assert not list(target.glob("*.part"))


def test_prepare_result_is_found_by_inspecting_the_model(source: Inspection, target: Path) -> None:
    copy = prepare_model(source, Q8, str(target))
    report = inspect_folder(source.report.folder, str(target.parent)).report
    assert report.prepared == [copy]
    assert find_prepared(str(target.parent), "another") == []


def test_prepare_again_does_nothing(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = prepare_model(source, Q8, str(target))
    monkeypatch.delattr(prepare, "write_file")
    told: list[tuple[int, int]] = []
    assert prepare_model(source, Q8, str(target), lambda *step: told.append(step)) == copy
    assert told == [(copy.size_bytes, copy.size_bytes)]


def test_prepare_again_needs_no_write_access(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = prepare_model(source, Q8, str(target))

    def refuse(path: Path, *rest: object, **named: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    assert prepare_model(source, Q8, str(target)) == copy


def test_prepare_killed_after_its_manifest_only_drops_the_note(
    source: Inspection, target: Path
) -> None:
    copy = prepare_model(source, Q8, str(target))
    (target / JOURNAL_NAME).write_text("{}")
    assert prepare_model(source, Q8, str(target)) == copy
    assert not is_unfinished(target)


def test_prepare_tells_progress_up_to_the_end(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.prepare.progress.MIN_INTERVAL_S", 0)
    told: list[tuple[int, int]] = []
    copy = prepare_model(source, Q8, str(target), lambda *step: told.append(step))
    assert told == sorted(told)
    assert {total for _, total in told} == {copy.size_bytes}
    assert told[-1] == (copy.size_bytes, copy.size_bytes)
    assert len(told) > 3 * 12


@pytest.mark.parametrize("num_checks", [0, 1, 20, 60, 90, 110])
def test_prepare_cancelled_keeps_finished_files_and_goes_on(
    source: Inspection, tmp_path: Path, num_checks: int
) -> None:
    prepare_model(source, Q8, str(tmp_path / "whole"))
    target = tmp_path / "copy"
    with pytest.raises(CancelledError):
        prepare_model(source, Q8, str(target), cancel=StopAfter(num_checks))
    kept = list(target.glob("*.safetensors"))
    assert kept_bytes(str(target)) == sum(file.stat().st_size for file in kept)
    assert not list(target.glob("*.part"))
    assert not (target / MANIFEST_NAME).exists()
    written: list[str] = []
    whole_write = weight_file.write_file

    with pytest.MonkeyPatch.context() as patch:

        def noted_write(path: Path, *rest: object) -> object:
            written.append(path.name)
            return whole_write(path, *rest)  # type: ignore[arg-type]

        patch.setattr(prepare, "write_file", noted_write)
        prepare_model(source, Q8, str(target))
    assert not {file.name for file in kept}.intersection(written)
    assert contents(target) == contents(tmp_path / "whole")


def test_prepare_writes_a_damaged_finished_file_again(source: Inspection, tmp_path: Path) -> None:
    prepare_model(source, Q8, str(tmp_path / "whole"))
    target = tmp_path / "copy"
    with pytest.raises(CancelledError):
        prepare_model(source, Q8, str(target), cancel=StopAfter(110))
    damaged = target / "experts-00000.safetensors"
    data = bytearray(damaged.read_bytes())
    data[-7000] ^= 4
    damaged.write_bytes(data)
    prepare_model(source, Q8, str(target))
    assert contents(target) == contents(tmp_path / "whole")


@pytest.mark.parametrize("loss", ["manifest", "layer", "cut"])
def test_prepare_repairs_a_copy_that_lost_something(
    source: Inspection, target: Path, loss: str
) -> None:
    prepare_model(source, Q8, str(target))
    whole = contents(target)
    layer = target / "experts-00001.safetensors"
    if loss == "manifest":
        (target / MANIFEST_NAME).write_bytes(b"{")
    elif loss == "layer":
        layer.unlink()
    else:
        layer.write_bytes(layer.read_bytes()[:-1])
    prepare_model(source, Q8, str(target))
    assert contents(target) == whole


@pytest.mark.parametrize("name", ["Модель", "モデル　一", "🦙 hot", "trailing dot.", "a" * 200])
def test_prepare_into_a_folder_of_any_name_works(
    source: Inspection, tmp_path: Path, name: str
) -> None:
    copy = prepare_model(source, Q8, str(tmp_path / name / "copy"))
    assert copy.folder == str(tmp_path / name / "copy")
    PreparedStore(Path(copy.folder)).close()


def test_manifest_names_source_and_checksums(source: Inspection, target: Path) -> None:
    prepare_model(source, Q8, str(target))
    manifest = read_manifest(target)
    assert manifest.source_fingerprint == source.report.fingerprint
    assert manifest.layers.keys() == {0, 1, 2}
    assert all(len(file.checksums) == 4 for file in manifest.layers.values())
    assert json.loads((target / MANIFEST_NAME).read_text())["source_name"] == "m"
