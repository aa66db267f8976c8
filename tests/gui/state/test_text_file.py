"""Files that go with a question: read in the usual encodings, or refused for a reason."""

import os
from pathlib import Path

import pytest

from app.state.text_file import (
    MAX_FILE_BYTES,
    TextFile,
    TextFileError,
    TextFileProblem,
    as_part_of_question,
    read_text_file,
)


@pytest.mark.parametrize(
    "content",
    [
        "größer\r\nline".encode(),
        b"\xef\xbb\xbf" + "größer\nline\n\n".encode(),
        "größer\nline".encode("utf-16"),
        "größer\rline".encode("cp1252"),
    ],
)
def test_text_is_read_whatever_wrote_it(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "notes.md"
    place.write_bytes(content)
    assert read_text_file(place) == TextFile("notes.md", "größer\nline")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", TextFileProblem.EMPTY),
        (b" \n\t\n", TextFileProblem.EMPTY),
        (b"\x89PNG\r\n\x1a\n\x00\x00", TextFileProblem.NOT_TEXT),
        (b"\x81\x8d", TextFileProblem.NOT_TEXT),
        (b"a" * (MAX_FILE_BYTES + 1), TextFileProblem.TOO_LARGE),
    ],
)
def test_what_is_no_text_is_refused(
    tmp_path: Path, content: bytes, problem: TextFileProblem
) -> None:
    place = tmp_path / "thing"
    place.write_bytes(content)
    with pytest.raises(TextFileError) as told:
        read_text_file(place)
    assert told.value.problem is problem


def test_odd_number_of_bytes_in_utf_16_falls_back(tmp_path: Path) -> None:
    place = tmp_path / "thing"
    place.write_bytes(b"\xff\xfeabc")
    assert read_text_file(place).text.endswith("abc")


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, problem in (
        ("pipe", TextFileProblem.NOT_TEXT),
        (".", TextFileProblem.NOT_TEXT),
        ("gone", TextFileProblem.UNREADABLE),
    ):
        with pytest.raises(TextFileError) as told:
            read_text_file(tmp_path / name)
        assert told.value.problem is problem
        assert bool(told.value.reason) == (problem is TextFileProblem.UNREADABLE)


def test_file_stands_in_a_fence_that_it_cannot_close() -> None:
    assert as_part_of_question(TextFile("a.py", "x = 1")) == "a.py:\n\n```py\nx = 1\n```"
    inner = "````\ncode\n````"
    assert as_part_of_question(TextFile("b", inner)) == f"b:\n\n`````\n{inner}\n`````"
