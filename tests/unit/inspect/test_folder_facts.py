"""Licence, tokenizer and template as a folder states them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from runtime.inspect import chat_files
from runtime.inspect.chat_files import (
    find_other_tokenizer,
    template_problems,
    tokenizer_problems,
)
from runtime.inspect.licence import read_licence
from runtime.inspect.listing import list_names
from runtime.protocol.errors import ErrorCode
from tests.support.checkpoint_folders import write_json


def licence_of(folder: Path) -> str:
    return read_licence(folder, list_names(folder))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nlicense: apache-2.0\n---\n", "apache-2.0"),
        ("---\r\nlanguage: en\r\nlicense: 'mit'\r\n---\r\n", "mit"),
        ("\ufeff---\nlicense: other\nlicense_name: tiny-research\n---\n", "tiny-research"),
        ("---\nlicense: other\n---\n", "other"),
        ("---\nlicense: " + "x" * 500 + "\n---\n", "x" * 100),
        ("---\ntags: []\n---\n", ""),
        ("# license: mit", ""),
    ],
)
def test_licence_of_model_card_is_found(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "README.md").write_text(text, encoding="utf-8", newline="")
    assert licence_of(tmp_path) == expected


def test_licence_file_is_next_best(tmp_path: Path) -> None:
    (tmp_path / "LICENSE.txt").write_text("\n   Apache License\n Version 2.0")
    assert licence_of(tmp_path) == "Apache License"


def test_licence_that_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    assert licence_of(tmp_path) == ""
    (tmp_path / "README.md").mkdir()
    (tmp_path / "LICENSE").symlink_to("gone")
    assert licence_of(tmp_path) == ""


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1', "<html></html>"])
def test_tokenizer_that_is_plainly_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    (error,) = tokenizer_problems(tmp_path)
    assert error.code is ErrorCode.TOKENIZER_INVALID


def test_tokenizer_above_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_files, "MAX_TOKENIZER_BYTES", 10)
    (tmp_path / "tokenizer.json").write_text('{"a": "bcdefg"}')
    (error,) = tokenizer_problems(tmp_path)
    assert "at most 10" in str(error.parameters["reason"])


def test_tokenizer_that_is_a_pipe_is_unreadable(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokenizer.json")
    (error,) = tokenizer_problems(tmp_path)
    assert error.code is ErrorCode.FILE_INVALID


def test_tokenizer_read_error_is_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("runtime.inspect.chat_files.os", SimpleNamespace(fstat=fail))
    (error,) = tokenizer_problems(tmp_path)
    assert error.code is ErrorCode.FILE_UNREADABLE


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("tokenizer_config.json", {"chat_template": "{{ x }}"}),
        ("tokenizer_config.json", {"chat_template": [{"name": "default", "template": "x"}]}),
        ("chat_template.json", {"chat_template": "x"}),
        ("chat_template.jinja", "x"),
    ],
)
def test_template_is_found_wherever_it_may_lie(tmp_path: Path, file: str, value: object) -> None:
    assert [error.code for error in template_problems(tmp_path, [])] == [
        ErrorCode.CHAT_TEMPLATE_MISSING
    ]
    write_json(tmp_path / file, value)
    assert list(template_problems(tmp_path, list_names(tmp_path))) == []


def test_template_in_broken_settings_names_the_settings(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{")
    (error,) = template_problems(tmp_path, [])
    assert error.code is ErrorCode.FILE_INVALID
    assert error.parameters["file"] == str(tmp_path / "tokenizer_config.json")


@pytest.mark.parametrize("name", ["tokenizer.model", "tiktoken.model", "family.tiktoken"])
def test_tokenizer_problems_vocabulary_of_another_library_is_in_order(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert list(tokenizer_problems(tmp_path)) == []
    assert find_other_tokenizer(tmp_path) == tmp_path / name


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs.github.com/spec/v1\noid x", b"<!doctype html><html>"]
)
def test_tokenizer_problems_something_else_under_the_name_of_a_vocabulary_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "tokenizer.model").write_bytes(content)
    (error,) = tokenizer_problems(tmp_path)
    assert error.code is ErrorCode.TOKENIZER_INVALID
    assert error.parameters["reason"]


def test_tokenizer_problems_two_vocabularies_alike_are_none(tmp_path: Path) -> None:
    for name in ("a.tiktoken", "b.tiktoken"):
        (tmp_path / name).write_bytes(b"x")
    (error,) = tokenizer_problems(tmp_path)
    assert error.code is ErrorCode.TOKENIZER_MISSING
