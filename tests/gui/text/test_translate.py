"""Words through gettext."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.text import translate, units
from app.text.errors import sentence
from app.text.languages import (
    ENGLISH,
    best_language,
    environment_languages,
    known_languages,
    translations_for,
)
from app.text.po_file import PoFileError, read_entries, translations_of
from app.text.words import ChatWords
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.sentences import template

HEAD = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
)


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    before = translate._Catalogue.current
    yield
    translate.use_translations(before)


def test_english_needs_no_file(tmp_path: Path) -> None:
    known = known_languages([tmp_path / "no such folder"])
    assert known == {ENGLISH: None}
    translate.use_translations(translations_for(ENGLISH, known))
    assert ChatWords.SEND == "Send"


def test_words_plurals_and_errors_follow_the_language(tmp_path: Path) -> None:
    busy = template(ErrorCode.ENGINE_BUSY)
    (tmp_path / "de.po").write_text(
        HEAD
        + '#: app/text/words.py\nmsgid "Send"\nmsgstr "Sen"\n"den"\n\n'
        + 'msgid "{count} token"\nmsgid_plural "{count} tokens"\n'
        + 'msgstr[0] "{count} Token"\nmsgstr[1] "{count} Tokens"\n'
        + '#, fuzzy\nmsgid "Stop"\nmsgstr "Halt"\n'
        + 'msgid "Copy"\nmsgstr ""\n'
        + f'msgid "{busy}"\nmsgstr "Das Modell ist noch beschäftigt."\n',
        encoding="utf-8",
    )
    known = known_languages([tmp_path])
    assert best_language(["fr", "de-AT"], known) == "de"
    translate.use_translations(translations_for("de", known))
    assert ChatWords.SEND == "Senden"
    assert units.tokens(1) == "1 Token"
    assert units.tokens(2) == "2 Tokens"
    report = ErrorReport(code=ErrorCode.ENGINE_BUSY, severity=Severity.REQUEST)
    assert sentence(report) == "Das Modell ist noch beschäftigt."
    # What nobody has looked at, and what has no words yet, stays English.
    assert ChatWords.STOP == "Stop"
    assert ChatWords.COPY == "Copy"


def test_file_of_the_person_replaces_the_shipped_one(tmp_path: Path) -> None:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    for folder in (shipped, own):
        folder.mkdir()
        (folder / "zh-CN.po").write_text(HEAD, encoding="utf-8")
    assert known_languages([shipped, own])["zh_CN"] == own / "zh-CN.po"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("msgid Send", "line 1 is no part"),
        ('"Send"', "line 1 is no part"),
        ('msgid "Send', "line 1 is no part"),
        ('msgid "Se\\qnd"', "line 1 has a quote"),
        ('msgid "Send"\nmsgstr "Senden"\n', "charset=UTF-8"),
        (HEAD.replace("(n != 1)", "(n !="), "cannot be understood"),
    ],
)
def test_file_that_is_no_list_of_translations_says_where(text: str, problem: str) -> None:
    with pytest.raises(PoFileError, match=problem):
        translations_of(text)


def test_file_in_another_encoding_says_so(tmp_path: Path) -> None:
    (tmp_path / "de.po").write_bytes('msgid "Send"\nmsgstr "Töne"\n'.encode("latin-1"))
    with pytest.raises(PoFileError, match="UTF-8"):
        translations_for("de", known_languages([tmp_path]))


def test_context_of_a_text_is_passed_over() -> None:
    entries = read_entries('msgctxt "menu"\nmsgid "Open"\nmsgstr "Öffnen"\n# last words\n')
    assert [(entry.one, entry.translations) for entry in entries] == [("Open", {0: "Öffnen"})]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["zh-Hans-CN", "zh"], "zh_CN"),
        (["zh_CN"], "zh_CN"),
        (["zh"], "zh_CN"),
        (["zh-Hant-TW"], "en"),
        (["en-GB", "zh-CN"], "en"),
        (["pt-BR", "pt"], "pt_BR"),
        (["pt-PT", "de"], "en"),
        ([], "en"),
    ],
)
def test_best_language_is_the_first_wanted_that_is_known(wanted: list[str], expected: str) -> None:
    assert best_language(wanted, ["en", "zh_CN", "pt_BR"]) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LANG": "zh_CN.UTF-8"}, ["zh_CN"]),
        ({"LC_ALL": "de_DE", "LANG": "zh_CN"}, ["de_DE"]),
        ({"LANG": "de_DE.UTF-8", "LANGUAGE": "zh_CN:de"}, ["zh_CN", "de"]),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh_CN"}, []),
        ({}, []),
    ],
)
def test_languages_of_a_terminal_are_those_of_its_variables(
    environment: dict[str, str], expected: list[str]
) -> None:
    assert environment_languages(environment) == expected
