"""Telling what a file really is from how it begins."""

import pytest

from runtime.inspect.lookalike import mistaken_for, mistaken_for_text


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"", "empty"),
        (bytes(16), "zeros"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (b"\x80\x02}q\x00X\x01\x00", "pickle"),
        (b"GGUF\3\0\0\0", "GGUF"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\xef\xbb\xbf\r\n <?xml version", "web page"),
        (b"<HTML>", "web page"),
    ],
)
def test_mistaken_for_names_what_it_is(start: bytes, words: str) -> None:
    assert words in mistaken_for(start)
    assert words in mistaken_for_text(start)


@pytest.mark.parametrize("num_bytes", [0x0280, 0x04034B50])
def test_mistaken_for_takes_no_header_for_a_pickle(num_bytes: int) -> None:
    assert mistaken_for_text(num_bytes.to_bytes(8, "little") + b'{"x": 1') == ""


def test_mistaken_for_leaves_json_alone_and_text_does_not() -> None:
    assert mistaken_for(b'{"a": 1}') == ""
    assert mistaken_for_text(b'{"a":\n 1}').endswith('message: “{"a": 1}”')
    assert mistaken_for_text(b"word " * 20).endswith("word word…”")
