"""The shipped translations: nothing is missing, and every place in braces is where it belongs."""

import re
from pathlib import Path

import pytest

from app.text.languages import SHIPPED
from app.text.po_file import PoEntry, read_entries, translations_of
from resources.translations.collect import ROOT, collect
from resources.translations.update import main, written
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import ReasonCode
from runtime.protocol.sentences import template

LANGUAGES = sorted(SHIPPED.glob("*.po"))
EVERY_LANGUAGE = pytest.mark.parametrize("path", LANGUAGES, ids=[path.stem for path in LANGUAGES])
PLACE = re.compile(r"\{[^}]*\}")
HOW = "write it with `python -m resources.translations.update` and fill in what it names"


def entries_of(path: Path) -> list[PoEntry]:
    return [entry for entry in read_entries(path.read_text(encoding="utf-8")) if entry.one]


def test_simplified_chinese_is_shipped() -> None:
    assert "zh_CN" in [path.stem for path in LANGUAGES]


def test_source_texts_are_found_wherever_they_are_written() -> None:
    found = {text.one: text.many for text in collect()}
    assert found["Send"] == ""
    assert found["{count} token"] == "{count} tokens"
    for code in (*ErrorCode, *ReasonCode):
        assert template(code) in found
    # A call that hands on anything but a plain text would never be found.
    source = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "app").rglob("*.py")))
    calls = re.findall(r"\b(?:tr|trn|Word)\(\s*([^\s\"')])", source)
    assert set(calls) <= {"s", "t", "o"}, "tr(self._english), tr(template(...)) and definitions"


@EVERY_LANGUAGE
def test_translation_has_every_text_of_the_source(path: Path) -> None:
    entries = {entry.one: entry for entry in entries_of(path)}
    texts = collect()
    missing = [
        text.one for text in texts if text.one not in entries or not entries[text.one].is_translated
    ]
    assert missing == [], HOW
    assert set(entries) - {text.one for text in texts} == set(), HOW
    assert {text.one: text.many for text in texts} == {
        entry.one: entry.many for entry in entries.values()
    }, HOW


@EVERY_LANGUAGE
def test_translation_keeps_the_places_of_numbers_and_names(path: Path) -> None:
    wrong = [
        (entry.one, form)
        for entry in entries_of(path)
        for form in entry.translations.values()
        if sorted(PLACE.findall(form)) != sorted(PLACE.findall(entry.many or entry.one or ""))
        and sorted(PLACE.findall(form)) != sorted(PLACE.findall(entry.one or ""))
    ]
    assert wrong == []


@EVERY_LANGUAGE
def test_translation_keeps_the_patterns_of_files(path: Path) -> None:
    for entry in entries_of(path):
        patterns = re.findall(r"\(\*[^)]*\)", entry.one or "")
        for form in entry.translations.values():
            assert re.findall(r"\(\*[^)]*\)", form) == patterns


@EVERY_LANGUAGE
def test_translation_is_read_whole(path: Path) -> None:
    read = translations_of(path.read_text(encoding="utf-8"))
    for entry in entries_of(path):
        if entry.many:
            assert read.ngettext(entry.one or "", entry.many, 1) in entry.translations.values()
        else:
            assert read.gettext(entry.one or "") == entry.translations[0]


@EVERY_LANGUAGE
def test_translation_is_written_as_its_update_writes_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert written(collect(), read_entries(text)) == text, HOW


def test_new_language_begins_with_all_texts_to_be_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("resources.translations.update.FOLDER", tmp_path)
    assert main(["fr"]) == 1
    entries = entries_of(tmp_path / "fr.po")
    assert [entry.one for entry in entries] == [text.one for text in collect()]
    assert not any(entry.is_translated for entry in entries)
    assert f"fr.po: {len(entries)} texts, {len(entries)} without words" in capsys.readouterr().out
