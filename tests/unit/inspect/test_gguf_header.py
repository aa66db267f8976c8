"""Headers of GGUF files are believed only as far as the file bears them out."""

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.inspect.gguf import cursor, header
from runtime.inspect.gguf.header import GgufHeader, ListPlace, read_header
from runtime.protocol.errors import ErrorCode
from tests.support.gguf_files import Declared, Raw, gguf_bytes, text, tiny_llama, write_gguf

ONE = {"a.weight": Declared((3, 32), "Q8_0")}


def read(path: Path, data: bytes) -> GgufHeader:
    path.write_bytes(data)
    return read_header(path)


def refused(path: Path, data: bytes) -> str:
    with pytest.raises(LarderError) as caught:
        read(path, data)
    assert caught.value.code is ErrorCode.SHARD_INVALID
    return str(caught.value.parameters["reason"])


def test_header_says_values_and_where_tensors_lie(tmp_path: Path) -> None:
    values = {
        "text": "Süße",
        "number": 7,
        "decimal": 0.5,
        "yes": True,
        "far": Raw(10, struct.pack("<Q", 1 << 40)),
        "few": [1, 2, 3],
        "names": ["a", "b"],
        "none": [],
    }
    tensors = {**ONE, "b": Declared((5,), "F32")}
    found = read(tmp_path / "x", gguf_bytes(values, tensors))
    assert found.values == {**values, "far": 1 << 40}
    first, second = found.tensors["a.weight"], found.tensors["b"]
    assert (first.shape, first.kind, first.num_bytes) == ((3, 32), "Q8_0", 3 * 34)
    assert first.offset_bytes % 32 == 0
    assert second.offset_bytes == first.offset_bytes + 128
    assert second.offset_bytes + 32 == found.file_bytes


@pytest.mark.parametrize("version", [2, 3])
def test_both_versions_are_read(tmp_path: Path, version: int) -> None:
    assert read(tmp_path / "x", gguf_bytes({}, ONE, version=version)).tensors.keys() == ONE.keys()


def test_long_lists_are_passed_over_and_their_place_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "_PIECE_BYTES", 1000)
    names = [f"token {number}" * (1 + number % 3) for number in range(5000)] + ["x" * 3000, "end"]
    values: dict[str, Any] = {"tokens": names, "scores": [0.5] * 5000, "after": 7}
    data = gguf_bytes(values, ONE)
    found = read(tmp_path / "x", data)
    tokens, scores = found.values["tokens"], found.values["scores"]
    assert isinstance(tokens, ListPlace)
    assert isinstance(scores, ListPlace)
    assert data[tokens.offset_bytes :][: tokens.num_bytes] == b"".join(map(text, names))
    assert (scores.num_items, scores.num_bytes) == (5000, 20000)
    assert found.values["after"] == 7
    assert found.tensors["a.weight"].offset_bytes + 128 == len(data)


def test_digest_changes_with_what_was_passed_over(tmp_path: Path) -> None:
    digests = {
        read(tmp_path / "x", gguf_bytes({"tokens": ["a"] * 99 + [last]}, ONE)).digest
        for last in ("b", "c", "b")
    }
    assert len(digests) == 2


HOSTILE = {
    "version 1": gguf_bytes({}, {}, version=1),
    "version 9": gguf_bytes({}, {}, version=9),
    "other order": gguf_bytes({}, {}, version=3 << 24),
    "too many tensors": gguf_bytes({}, {}, counts=(1 << 60, 0)),
    "too many keys": gguf_bytes({}, {}, counts=(0, 1 << 60)),
    "unknown type": gguf_bytes({"a": Raw(99, b"")}, {}),
    "list of lists": gguf_bytes({"a": Raw(9, struct.pack("<IQ", 9, 1))}, {}),
    "long text": gguf_bytes({"a": "x" * 5_000_000}, {}),
    "alignment 12": gguf_bytes({"general.alignment": 12}, {}),
    "alignment 0": gguf_bytes({"general.alignment": 0}, {}),
    "alignment text": gguf_bytes({"general.alignment": "32"}, {}),
    "key twice": b"GGUF"
    + struct.pack("<IQQ", 3, 0, 2)
    + 2 * (text("a") + struct.pack("<IB", 0, 1)),
    "five dimensions": gguf_bytes({}, {"a": Declared((1, 1, 1, 1, 32))}),
    "huge": gguf_bytes({}, {"a": Declared((1 << 40, 1 << 40), data=b"")}),
    "part of a block": gguf_bytes({}, {"a": Declared((3, 33), "Q8_0", b"")}),
    "odd offset": gguf_bytes({}, {"a": Declared((3, 32), offset_bytes=8)}),
    "overlap": gguf_bytes({}, {"a": Declared((8,)), "b": Declared((8,), offset_bytes=0)}),
    "text": b"<html>" + b"x" * 500,
    "other": bytes(range(200)),
}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("version 1", "version 1"),
        ("version 9", "version 9"),
        ("other order", "order of bytes"),
        ("too many tensors", "matrices"),
        ("too many keys", "keys"),
        ("unknown type", "type 99"),
        ("list of lists", "items of a type 9"),
        ("long text", "a text of 5000000 bytes"),
        ("alignment 12", "alignment is 12"),
        ("alignment 0", "alignment is 0"),
        ("alignment text", "alignment is 32"),
        ("key twice", "'a' twice"),
        ("five dimensions", "5 dimensions"),
        ("huge", "larger than any file"),
        ("part of a block", "whole blocks of Q8_0"),
        ("odd offset", "multiple"),
        ("overlap", "overlaps"),
        ("text", "web page"),
        ("other", "does not begin as GGUF"),
    ],
)
def test_hostile_header_is_refused_by_name(tmp_path: Path, name: str, words: str) -> None:
    assert words in refused(tmp_path / "x", HOSTILE[name])


def test_matrix_twice_and_unknown_kind_are_refused(tmp_path: Path) -> None:
    data = gguf_bytes({}, {"aa": Declared((8,)), "ab": Declared((8,))})
    assert "twice" in refused(tmp_path / "x", data.replace(b"ab", b"aa"))
    number = data.index(b"aa") + 2 + 4 + 8
    changed = data[:number] + struct.pack("<I", 77) + data[number + 4 :]
    assert "kind 77" in refused(tmp_path / "x", changed)


def test_header_of_more_bytes_than_are_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header, "MAX_HEADER_BYTES", 200)
    assert "more than 200 bytes" in refused(tmp_path / "x", gguf_bytes({"a": "x" * 300}, {}))


@pytest.mark.parametrize("cut", [3, 10, 30, 60, 100, 200])
def test_cut_file_tells_both_sizes_or_what_it_is(tmp_path: Path, cut: int) -> None:
    data = gguf_bytes({"key": "value"}, ONE)
    with pytest.raises(LarderError) as caught:
        read(tmp_path / "x", data[:cut])
    error = caught.value
    if cut < 4:
        assert error.code is ErrorCode.SHARD_INVALID
        return
    assert error.code is ErrorCode.SHARD_TRUNCATED
    assert error.parameters["found_bytes"] == cut
    assert int(error.parameters["expected_bytes"]) > cut


def test_file_that_shrinks_or_fails_while_it_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = gguf_bytes({"key": "value"}, ONE)

    path = tmp_path / "x"
    path.write_bytes(data + bytes(999))
    with path.open("rb") as whole:

        class Shrunk(io.BytesIO):
            def fileno(self) -> int:
                return whole.fileno()

        class Failing(Shrunk):
            def read(self, num_bytes: int | None = -1) -> bytes:
                raise OSError(5, "Input/output error")

        for kind, code in ((Shrunk, "shard_invalid"), (Failing, "file_unreadable")):
            monkeypatch.setattr(header, "open_regular", lambda path, kind=kind: kind(data[:40]))
            with pytest.raises(LarderError) as caught:
                read_header(path)
            assert caught.value.code.value == code


def outcome(path: Path) -> tuple[ErrorCode | None, list[int]]:
    """Return how a file is refused, and where its tensors end."""
    try:
        found = read_header(path)
    except LarderError as error:
        return error.code, []
    return None, [each.offset_bytes + each.num_bytes for each in found.tensors.values()]


SEED = gguf_bytes(*tiny_llama())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_changed_bytes_give_a_header_or_a_sentence(tmp_path: Path, data: st.DataObject) -> None:
    changed = bytearray(SEED[:9000])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 8))
        new = data.draw(st.binary(min_size=1, max_size=8))
        changed[place : place + len(new)] = new
    refusals = {ErrorCode.SHARD_INVALID, ErrorCode.SHARD_TRUNCATED}
    path = tmp_path / "x"
    path.write_bytes(bytes(changed) + SEED[9000:])
    code, ends = outcome(path)
    assert code in refusals or (code is None and max(ends, default=0) <= path.stat().st_size)


def test_tiny_model_is_written_and_read(tmp_path: Path) -> None:
    values, tensors = tiny_llama()
    found = read_header(write_gguf(tmp_path / "m.gguf", values, tensors))
    assert found.tensors.keys() == tensors.keys()
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "none.gguf")
