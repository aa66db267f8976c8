"""The index and the choice of weight files."""

from pathlib import Path

import pytest

from runtime.errors import LarderError, report_of
from runtime.inspect import shards
from runtime.inspect.shards import INDEX_NAME, is_shard_name, read_shards
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence
from tests.support.checkpoint_folders import write_json, write_safetensors


def read(folder: Path) -> shards.Shards:
    return read_shards(folder, sorted(path.name for path in folder.iterdir()))


def tensor(data: bytes) -> tuple[str, tuple[int, ...], bytes]:
    return ("U8", (len(data),), data)


@pytest.mark.parametrize(
    "name",
    [
        "../model.safetensors",
        "/etc/model.safetensors",
        "a/b.safetensors",
        "a\\b.safetensors",
        "C:x.safetensors",
        "..",
        "",
        "passwd",
        "a\0.safetensors",
        "a\n.safetensors",
        "x" * 250 + ".safetensors",
    ],
)
def test_index_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    assert not is_shard_name(name)
    write_json(tmp_path / INDEX_NAME, {"weight_map": {"x": name}})
    found = read(tmp_path)
    assert [error.code for error in found.problems] == [ErrorCode.CONFIG_INVALID]
    assert found.headers == {}
    assert found.broken == {}


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"x": 1}}'],
)
def test_index_that_is_no_index_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / INDEX_NAME).write_text(content)
    (error,) = read(tmp_path).problems
    is_json = content.startswith("{") and content.endswith("}")
    assert error.code is (ErrorCode.CONFIG_INVALID if is_json else ErrorCode.FILE_INVALID)
    assert str(error.parameters["file"]).endswith(INDEX_NAME)
    assert "?" not in sentence(report_of(error))


def test_index_that_is_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / INDEX_NAME).symlink_to(tmp_path / "gone")
    (error,) = read(tmp_path).problems
    assert error.parameters["reason"] == "it is a link to a file that is not there"


def test_index_of_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MAX_SHARDS", 2)
    weight_map = {str(number): f"{number}.safetensors" for number in range(3)}
    write_json(tmp_path / INDEX_NAME, {"weight_map": weight_map})
    (error,) = read(tmp_path).problems
    assert error.parameters["found"] == "a list of 3 files"
    assert str(error.parameters["file"]).endswith(INDEX_NAME)
    assert error.parameters["expected"] == "at most 2"
    with pytest.raises(LarderError) as caught:
        shards.read_index_files(tmp_path / INDEX_NAME)
    assert caught.value.parameters == error.parameters
    write_json(tmp_path / INDEX_NAME, {"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}})
    assert shards.read_index_files(tmp_path / INDEX_NAME) == ["a.safetensors", "b.safetensors"]


def test_index_decides_which_of_two_files_holds_a_tensor(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"x": tensor(b"a")})
    write_safetensors(
        tmp_path / "b.safetensors", {"x": tensor(b"b"), "y": tensor(b"c"), "z": tensor(b"d")}
    )
    write_json(tmp_path / INDEX_NAME, {"weight_map": {"x": "b.safetensors", "y": "b.safetensors"}})
    found = read(tmp_path)
    assert found.tensors["x"][0] == tmp_path / "b.safetensors"
    assert found.tensors.keys() == {"x", "y"}
    assert found.broken == {}


def test_shards_without_index_holding_a_tensor_twice_are_refused(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"x": tensor(b"a")})
    write_safetensors(tmp_path / "b.safetensors", {"x": tensor(b"b")})
    found = read(tmp_path)
    assert found.broken["b.safetensors"].code is ErrorCode.SHARD_INVALID
    assert "is in a.safetensors too" in str(found.broken["b.safetensors"].parameters["reason"])


def test_shards_without_index_pass_over_adapters_and_consolidated_files(tmp_path: Path) -> None:
    for name in ("a", "adapter_model", "consolidated.00"):
        write_safetensors(tmp_path / f"{name}.safetensors", {name: tensor(b"a")})
    assert read(tmp_path).headers.keys() == {"a.safetensors"}


def test_shards_prefer_the_single_file(tmp_path: Path) -> None:
    for name in ("model", "other"):
        write_safetensors(tmp_path / f"{name}.safetensors", {name: tensor(b"a")})
    assert read(tmp_path).headers.keys() == {"model.safetensors"}


def test_index_none_of_whose_files_is_left_gives_way_to_the_single_file(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"x": tensor(b"a")})
    write_json(tmp_path / INDEX_NAME, {"weight_map": {"x": "model-00001-of-00001.safetensors"}})
    found = read(tmp_path)
    assert found.headers.keys() == {"model.safetensors"}
    assert (found.weight_map, found.broken, found.problems) == ({}, {}, [])


def test_headers_together_have_the_room_of_one(tmp_path: Path) -> None:
    for name in "abc":
        write_safetensors(tmp_path / f"{name}.safetensors", {name: tensor(b"a")})
    size = int.from_bytes((tmp_path / "a.safetensors").read_bytes()[:8], "little")
    found = shards.Shards(room_bytes=2 * size + 5)
    for name in "abc":
        found.add(tmp_path / f"{name}.safetensors", f"{name}.safetensors")
    assert found.headers.keys() == {"a.safetensors", "b.safetensors"}
    assert "at most 5 are read" in str(found.broken["c.safetensors"].parameters["reason"])


def test_headers_with_too_many_tensors_together_are_not_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        write_safetensors(tmp_path / f"{name}.safetensors", {name: tensor(b"a")})
    monkeypatch.setattr(shards, "MAX_TENSORS", 1)
    found = read(tmp_path)
    assert found.headers.keys() == {"a.safetensors"}
    assert "more than 1 matrices" in str(found.broken["b.safetensors"].parameters["reason"])
    assert "no more are read" in str(found.broken["c.safetensors"].parameters["reason"])
