"""Finding prepared copies and reading their manifests."""

from pathlib import Path

import msgspec
import pytest

from runtime.errors import LarderError
from runtime.inspect.manifest import (
    MANIFEST_NAME,
    Manifest,
    PreparedFile,
    read_manifest,
    write_manifest,
)
from runtime.inspect.prepared import find_prepared
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import PreparedCopy
from runtime.protocol.values import WeightFormat

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


def put(folder: Path, manifest: Manifest = MANIFEST) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST_NAME).write_bytes(write_manifest(manifest))
    return folder


def test_manifest_survives_a_round_trip(tmp_path: Path) -> None:
    assert read_manifest(put(tmp_path)) == MANIFEST
    assert MANIFEST.size_bytes == 300


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
