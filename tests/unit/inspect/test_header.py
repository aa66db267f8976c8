"""Safetensors headers: what is accepted, what is refused and why."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from runtime.errors import LarderError
from runtime.inspect import bounded_json
from runtime.inspect.header import MAX_HEADER_BYTES, read_header
from runtime.protocol.errors import ErrorCode
from tests.support.checkpoint_folders import write_raw_safetensors, write_safetensors


def entry(begin: int, end: int, shape: object = (4,), dtype: object = "U8") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def refusal(path: Path) -> LarderError:
    with pytest.raises(LarderError) as caught:
        read_header(path)
    return caught.value


def write(path: Path, header: Mapping[str, object], num_bytes: int) -> Path:
    write_raw_safetensors(path, json.dumps(header).encode(), bytes(num_bytes))
    return path


def test_header_of_valid_file_gives_extents_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"x": ("U8", (4,), b"abcd"), "y": ("F16", (), b"ef")})
    header = read_header(path)
    assert header.metadata == {"format": "pt"}
    assert header.file_bytes == path.stat().st_size
    data = path.read_bytes()
    found = {
        name: data[tensor.offset_bytes : tensor.offset_bytes + tensor.num_bytes]
        for name, tensor in header.tensors.items()
    }
    assert found == {"x": b"abcd", "y": b"ef"}


def test_header_with_padding_and_empty_tensors_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    text = json.dumps({"x": entry(0, 4), "e": entry(4, 4, [0, 7])}).encode().ljust(500)
    write_raw_safetensors(path, text, b"abcd")
    assert read_header(path).tensors.keys() == {"x", "e"}


def test_header_without_tensors_is_valid(tmp_path: Path) -> None:
    assert read_header(write(tmp_path / "a.safetensors", {}, 0)).tensors == {}


def test_header_of_unknown_element_type_is_left_to_others(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"x": entry(0, 3, [4], "F6_NEW")}, 3)
    assert read_header(path).tensors["x"].dtype == "F6_NEW"


def test_header_of_half_byte_elements_is_measured_in_bits(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"x": entry(0, 3, [5], "F4")}, 3)
    assert read_header(path).tensors["x"].num_bytes == 3


@pytest.mark.parametrize(
    ("header", "num_bytes", "words"),
    [
        ({"x": entry(0, 4), "y": entry(2, 6)}, 6, "overlaps"),
        ({"x": entry(0, 4), "y": entry(5, 9)}, 9, "gap"),
        ({"x": entry(1, 5)}, 5, "gap"),
        ({"x": entry(0, 4)}, 9, "5 bytes follow"),
        ({"x": entry(0, 4, [5])}, 4, "shape and bytes"),
        ({"x": entry(0, 4, [2**62, 2**62])}, 4, "shape and bytes"),
        ({"x": entry(4, 0)}, 4, "no known way"),
        ({"x": entry(-4, 0)}, 4, "no known way"),
        ({"x": entry(0, 2**63)}, 4, "no known way"),
        ({"x": entry(0, 4, [-4])}, 4, "no known way"),
        ({"x": entry(0, 4, [True] * 4)}, 4, "no known way"),
        ({"x": entry(0, 4, [1] * 9)}, 4, "no known way"),
        ({"x": entry(0, 4, [4], 7)}, 4, "no known way"),
        ({"x": {"dtype": "U8", "shape": [4]}}, 4, "no known way"),
        ({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 2, 4]}}, 4, "no known way"),
        ({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0.0, 4]}}, 4, "no known way"),
        ({"x": [0, 4]}, 4, "no known way"),
        ({"__metadata__": ["pt"]}, 0, "metadata"),
    ],
)
def test_header_that_lies_is_refused(
    tmp_path: Path, header: dict[str, object], num_bytes: int, words: str
) -> None:
    error = refusal(write(tmp_path / "a.safetensors", header, num_bytes))
    assert error.code is ErrorCode.SHARD_INVALID
    assert words in str(error.parameters["reason"])


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"{", "JSON"),
        (b"[]", "list"),
        (b"\xff\xfe{}", "JSON"),
        (b'{"x": 1, "x": 2}', "twice"),
        (b"[" * 100_000, "deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "JSON"),
        (b'{"\\ud800": {}}', "JSON"),
        (b'{"a": ["\\ud800"]}', "JSON"),
        (b'{"a": [1, null, "\\uD83D\\uDE00"]}', "no known way"),
    ],
)
def test_header_text_that_is_not_json_is_refused(tmp_path: Path, header: bytes, words: str) -> None:
    path = tmp_path / "a.safetensors"
    write_raw_safetensors(path, header, b"")
    error = refusal(path)
    assert error.code is ErrorCode.SHARD_INVALID
    assert words in str(error.parameters["reason"])


def test_header_with_too_many_values_is_refused_before_parsing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_json, "MAX_SEPARATORS", 10)
    path = tmp_path / "a.safetensors"
    write_raw_safetensors(path, b"[" + b"1," * 11 + b"1]", b"")
    assert "more than 10 values" in str(refusal(path).parameters["reason"])


def test_header_of_nothing_but_lists_is_refused_before_parsing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_json, "MAX_OPENINGS", 10)
    path = tmp_path / "a.safetensors"
    write_raw_safetensors(path, b"[" * 11 + b"]" * 11, b"")
    assert "more than 10 objects and lists" in str(refusal(path).parameters["reason"])


def test_header_of_a_file_that_shrinks_meanwhile_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.safetensors", {"x": entry(0, 4)}, 4)
    whole = path.stat()

    def look_and_cut(descriptor: int) -> os.stat_result:
        os.truncate(path, 20)
        return whole

    monkeypatch.setattr("runtime.inspect.header.os", SimpleNamespace(fstat=look_and_cut))
    assert refusal(path).parameters["reason"] == "it became shorter while it was read"


def test_header_longer_than_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes((MAX_HEADER_BYTES + 1).to_bytes(8, "little") + b"{}")
    assert "claims" in str(refusal(path).parameters["reason"])


@pytest.mark.parametrize("num_bytes", [0, 7])
def test_header_of_file_without_length_is_truncated(tmp_path: Path, num_bytes: int) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(bytes(num_bytes))
    error = refusal(path)
    assert error.code is ErrorCode.SHARD_TRUNCATED
    assert error.parameters["found_bytes"] == num_bytes
    assert error.parameters["expected_bytes"] == 8


def test_header_cut_inside_states_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes((1000).to_bytes(8, "little") + b"{" * 100)
    error = refusal(path)
    assert error.code is ErrorCode.SHARD_TRUNCATED
    assert error.parameters["expected_bytes"] == 1008


def test_header_of_absent_file_is_left_to_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "a.safetensors")


def test_header_read_error_is_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.safetensors", {}, 0)

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("runtime.inspect.header.os", SimpleNamespace(fstat=fail))
    error = refusal(path)
    assert error.code is ErrorCode.FILE_UNREADABLE
    assert error.parameters == {"file": str(path), "reason": "Input/output error"}
