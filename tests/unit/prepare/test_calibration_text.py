"""Texts that a model is calibrated with: what is none is refused with what to choose instead."""

from pathlib import Path

import pytest

from runtime.errors import LarderError, report_of
from runtime.prepare import calibration_text
from runtime.prepare.calibration_text import MIN_TEXT_WORDS, SUPPLIED, read_text
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence


def refusal(place: Path) -> str:
    with pytest.raises(LarderError) as refused:
        read_text(place)
    assert refused.value.code is ErrorCode.TEXT_INVALID
    text = sentence(report_of(refused.value))
    assert text.startswith(f"{place} cannot be used as the text that a model reads: ")
    assert "Choose a file of plain text, saved as UTF-8, of at least 100 words." in text
    assert "Download" not in text
    return text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf \n", "it is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "it is no text but data, as its byte 9 says"),
        ("ein längerer Text".encode("latin-1"), "it is not UTF-8 from byte 6 on"),
        ("some words".encode("utf-16"), "it is saved as UTF-16"),
    ],
    ids=["empty", "blank", "binary", "latin", "utf-16"],
)
def test_what_is_no_text_is_refused_as_a_text(tmp_path: Path, data: bytes, reason: str) -> None:
    place = tmp_path / "mine.txt"
    place.write_bytes(data)
    assert f": {reason}. Choose" in refusal(place)


def test_folder_lost_and_large_texts_are_refused_as_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "it is a folder and not a file" in refusal(tmp_path)
    assert "it is not there" in refusal(tmp_path / "gone.txt")
    monkeypatch.setattr(calibration_text, "MAX_TEXT_BYTES", 10)
    (tmp_path / "long.txt").write_text("more than ten")
    assert "it has 13 bytes, at most 10 are read" in refusal(tmp_path / "long.txt")


def test_marked_text_is_read_without_its_mark(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("größer", encoding="utf-8-sig")
    assert read_text(tmp_path / "mine.txt") == "größer"
    assert len(read_text(SUPPLIED).split()) > MIN_TEXT_WORDS
