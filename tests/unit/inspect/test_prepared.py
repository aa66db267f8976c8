"""Finding prepared copies and reading their manifests."""

import dataclasses
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from runtime.errors import LarderError
from runtime.inspect import manifest
from runtime.inspect.folder import inspect_folder
from runtime.inspect.manifest import (
    MANIFEST_NAME,
    Manifest,
    PreparedFile,
    read_manifest,
    write_manifest,
)
from runtime.inspect.place import Place, find_model
from runtime.inspect.prepared import find_prepared
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import PreparedCopy
from runtime.protocol.values import WeightFormat
from runtime.spec.ram_slots import Records
from runtime.spec.tensors import expert_layout
from tests.support.checkpoint_folders import edit_json, write_checkpoint

MANIFEST = Manifest(
    version=1,
    source_name="m",
    source_fingerprint="f",
    expert_format=WeightFormat.Q8_G32,
    hidden_size=64,
    expert_width=32,
    record_bytes=8192,
    num_experts=2,
    dense=PreparedFile(name="dense.safetensors", size_bytes=100, checksums=[1]),
    layers={3: PreparedFile(name="experts.safetensors", size_bytes=200, checksums=[2, 3])},
)


def put(folder: Path, content: Manifest = MANIFEST) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST_NAME).write_bytes(write_manifest(content))
    return folder


def test_manifest_survives_a_round_trip(tmp_path: Path) -> None:
    assert read_manifest(put(tmp_path)) == MANIFEST
    assert MANIFEST.size_bytes == 300
    assert MANIFEST.records == Records(2 * 8192, (8192,))


def test_manifest_of_a_mix_knows_what_its_records_take(tmp_path: Path) -> None:
    formats = [WeightFormat.Q8_G32, WeightFormat.Q3_G16]
    mixed = dataclasses.replace(MANIFEST, version=2, formats={3: formats}, dense_ram_bytes=77)
    assert read_manifest(put(tmp_path / "copy", mixed)) == mixed
    sizes = [expert_layout(each, 64, 32).record_bytes for each in formats]
    assert (mixed.records.total_bytes, mixed.records.largest_bytes) == (sum(sizes), sizes[0])
    assert mixed.mix_bits == 8 * sum(sizes) / (2 * 3 * 64 * 32)
    assert MANIFEST.mix_bits == 0
    (copy,) = find_prepared(str(tmp_path), "f")
    assert (copy.records_bytes, copy.slot_bytes) == (sum(sizes), [sizes[0]])
    assert (copy.dense_ram_bytes, copy.mix_bits) == (77, mixed.mix_bits)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 1},
        {"formats": {3: [WeightFormat.Q8_G32]}},
        {"formats": {4: [WeightFormat.Q8_G32] * 2}},
        {"formats": {3: [WeightFormat.Q2_G16] * 2}},
        {"formats": {}},
    ],
)
def test_manifest_of_a_mix_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    formats = {3: [WeightFormat.Q8_G32, WeightFormat.Q3_G16]}
    put(tmp_path, dataclasses.replace(MANIFEST, **{"version": 2, "formats": formats, **changes}))
    with pytest.raises(LarderError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code is ErrorCode.STORE_INVALID


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"\xff", b"[" * 5000, write_manifest(MANIFEST).replace(b'"m"', b"3")],
)
def test_manifest_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(LarderError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code is ErrorCode.STORE_INVALID


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("dense", {"name": "../dense.safetensors", "size_bytes": 1, "checksums": []}),
    ],
)
def test_manifest_of_other_version_or_with_escapes_is_refused(
    tmp_path: Path, field: str, value: object
) -> None:
    changed = msgspec.to_builtins(MANIFEST, str_keys=True) | {field: value}
    (tmp_path / MANIFEST_NAME).write_bytes(msgspec.json.encode(changed))
    with pytest.raises(LarderError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code is ErrorCode.STORE_INVALID


def test_find_prepared_lists_complete_copies_of_the_same_checkpoint(tmp_path: Path) -> None:
    put(tmp_path / "a")
    put(tmp_path / "b")
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / MANIFEST_NAME).write_bytes(b"{")
    (tmp_path / "file").touch()
    copies = find_prepared(str(tmp_path), "f")
    assert copies == [
        PreparedCopy(folder=str(tmp_path / name), expert_format=WeightFormat.Q8_G32, size_bytes=300)
        for name in ("a", "b")
    ]
    assert find_prepared(str(tmp_path), "other") == []


@pytest.mark.parametrize("folder", ["", "/nowhere/at/all", "a\0b"])
def test_find_prepared_nowhere_finds_nothing(folder: str) -> None:
    assert find_prepared(folder, "f") == []


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "models" / "Tiny")


def copy_of(model: Path, folder: Path, **changes: object) -> Path:
    """Write what tells a copy of ``model`` from the model itself."""
    write_checkpoint(folder)
    fields: dict[str, object] = {
        "source_name": "Tiny",
        "source_folder": str(model),
        "source_fingerprint": inspect_folder(str(model)).report.fingerprint,
    }
    changed = msgspec.to_builtins(MANIFEST, str_keys=True) | fields | changes
    (folder / MANIFEST_NAME).write_bytes(msgspec.json.encode(changed))
    return folder


def test_dropped_copy_leads_to_its_model_and_is_listed(model: Path, tmp_path: Path) -> None:
    copy = copy_of(model, tmp_path / "copies" / "c")
    for prepared_folder in ("", str(copy.parent)):
        report = inspect_folder(str(copy), prepared_folder).report
        assert report.is_runnable
        assert report.folder == str(model)
        assert [each.folder for each in report.prepared] == [str(copy)]


@pytest.mark.parametrize("place", ["", "/nowhere/at/all", "//server/share", "\\\\server\\share"])
def test_dropped_copy_whose_model_is_not_there_names_it(
    model: Path, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copy_of(model, tmp_path / "c", source_folder=place)
    looked: list[str] = []

    def looked_for(folder: str) -> Place:
        looked.append(folder)
        return find_model(folder)

    monkeypatch.setattr("runtime.inspect.prepared.find_model", looked_for)
    (problem,) = inspect_folder(str(copy)).report.problems
    assert problem.code is ErrorCode.COPY_WITHOUT_MODEL
    assert problem.parameters == {"folder": str(copy), "name": "Tiny"}
    assert not any("server" in folder for folder in looked), "no server is called"


def test_dropped_copy_of_another_version_or_of_a_copy_is_refused(
    model: Path, tmp_path: Path
) -> None:
    copy = copy_of(model, tmp_path / "c")
    second = copy_of(model, tmp_path / "d", source_folder=str(copy), source_name="")
    edit_json(model / "config.json", rope_theta=20000.0)
    for folder, name in ((copy, "Tiny"), (second, "the model")):
        (problem,) = inspect_folder(str(folder)).report.problems
        assert problem.code is ErrorCode.COPY_WITHOUT_MODEL
        assert problem.parameters["name"] == name


def test_dropped_copy_with_a_broken_manifest_says_so(model: Path, tmp_path: Path) -> None:
    copy = copy_of(model, tmp_path / "c")
    (copy / MANIFEST_NAME).write_bytes(b"{}")
    (problem,) = inspect_folder(str(copy)).report.problems
    assert problem.code is ErrorCode.STORE_INVALID


def test_manifest_that_is_a_folder_is_refused_and_one_that_cannot_be_read_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / MANIFEST_NAME).mkdir()
    with pytest.raises(LarderError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code is ErrorCode.STORE_INVALID
    assert "it is a folder" in str(caught.value.parameters["reason"])
    monkeypatch.setattr(
        manifest, "read_small", Mock(side_effect=LarderError(ErrorCode.FILE_UNREADABLE))
    )
    with pytest.raises(LarderError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code is ErrorCode.FILE_UNREADABLE
