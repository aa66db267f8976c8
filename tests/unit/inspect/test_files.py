"""Opening strangers' files: only regular ones, with limits, and errors in our words."""

import errno
import os
import tracemalloc
from pathlib import Path
from typing import Self

import pytest

from runtime.errors import LarderError
from runtime.inspect.files import is_file, open_regular, read_small, read_start, shown, unreadable
from runtime.protocol.errors import ErrorCode


def test_open_regular_refuses_a_pipe_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LarderError) as caught:
        open_regular(tmp_path / "pipe")
    assert caught.value.code is ErrorCode.FILE_INVALID
    assert caught.value.parameters["reason"] == "it is a pipe and not a file"


def test_open_regular_refuses_a_pipe_that_took_the_place_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    before = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(Path, "stat", lambda self: before)
    with pytest.raises(LarderError) as caught:
        open_regular(path)
    assert caught.value.parameters["reason"] == "it is a pipe and not a file"


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ELOOP, ErrorCode.FILE_INVALID, "leads back to itself"),
        (errno.ENAMETOOLONG, ErrorCode.FILE_UNREADABLE, "move the folder to a shorter one"),
    ],
)
def test_unreadable_says_what_helps_for_links_in_circles_and_long_paths(
    number: int, code: ErrorCode, words: str
) -> None:
    error = unreadable(Path("a"), OSError(number, os.strerror(number)))
    assert error.code is code
    assert words in str(error.parameters["reason"])


def test_open_regular_without_permission_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")

    def refuse(place: Path, flags: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("runtime.inspect.files.os.open", refuse)
    with pytest.raises(LarderError) as caught:
        open_regular(path)
    assert caught.value.parameters == {"file": str(path), "reason": "Permission denied"}


def test_open_regular_with_impossible_name_is_translated() -> None:
    with pytest.raises(LarderError) as caught:
        open_regular(Path("a\0b"))
    assert caught.value.code is ErrorCode.FILE_UNREADABLE


def test_read_small_makes_room_for_what_is_there_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    tracemalloc.start()
    try:
        assert read_small(tmp_path / "a", 64_000_000) == b"12345"
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000


def test_read_small_takes_what_a_file_has_grown_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"12345678")
    told = (tmp_path / "a").stat()
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result([*told[:6], 2, *told[7:]]))
    assert read_small(tmp_path / "a", 100) == b"12345678"
    assert read_small(tmp_path / "a", 7) == b"1234567"


def test_read_small_refuses_a_file_above_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_small(tmp_path / "a", 5) == b"12345"
    with pytest.raises(LarderError) as caught:
        read_small(tmp_path / "a", 4)
    assert "at most 4" in str(caught.value.parameters["reason"])


def test_read_start_gives_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_start(tmp_path / "a", 2) == b"12"
    assert read_start(tmp_path / "a", 9) == b"12345"


def test_reads_that_fail_on_the_way_are_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"12345")

    class Failing:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def fileno(self) -> int:
            raise OSError(5, "Input/output error")

        def seek(self, offset_bytes: int) -> int:
            return offset_bytes

        def read(self, num_bytes: int) -> bytes:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("runtime.inspect.files.open_regular", lambda path: Failing())
    for read in (read_small, read_start):
        with pytest.raises(LarderError) as caught:
            read(tmp_path / "a", 10)
        assert caught.value.parameters["reason"] == "Input/output error"


def test_is_file_is_false_for_folders_and_impossible_names(tmp_path: Path) -> None:
    assert not is_file(tmp_path)
    assert not is_file(Path("a\0b"))
    (tmp_path / "a").touch()
    assert is_file(tmp_path / "a")


def test_shown_text_can_always_be_encoded() -> None:
    assert shown("a\udcffb") == "a?b"
    assert shown("Модель") == "Модель"
