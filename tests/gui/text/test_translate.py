"""Words through gettext."""

import gettext
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.text import translate, units
from app.text.errors import sentence
from app.text.words import ChatWords
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.sentences import template


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    yield
    translate._Catalogue.current = gettext.NullTranslations()


def write_catalogue(folder: Path, texts: dict[str, str]) -> None:
    """Write a German ``.mo`` file with these texts."""
    texts = {"": "Content-Type: text/plain; charset=UTF-8\n"
             "Plural-Forms: nplurals=2; plural=(n != 1);\n", **texts}  # fmt: skip
    pairs = [(key.encode(), value.encode()) for key, value in sorted(texts.items())]
    header = 28
    offset = header + 16 * len(pairs)
    tables, data = [b"", b""], b""
    for column in (0, 1):
        for pair in pairs:
            tables[column] += struct.pack("<II", len(pair[column]), offset + len(data))
            data += pair[column] + b"\0"
    place = folder / "de" / "LC_MESSAGES" / "larder.mo"
    place.parent.mkdir(parents=True)
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), header, header + 8 * len(pairs), 0, 0)
    place.write_bytes(head + b"".join(tables) + data)


def test_english_needs_no_catalogue(tmp_path: Path) -> None:
    assert not translate.use_languages(tmp_path, ["de"])
    assert ChatWords.SEND == "Send"


def test_words_plurals_and_errors_follow_the_language(tmp_path: Path) -> None:
    busy = template(ErrorCode.ENGINE_BUSY)
    write_catalogue(
        tmp_path,
        {"Send": "Senden", "{count} token\0{count} tokens": "{count} Token\0{count} Tokens",
         busy: "Das Modell ist noch beschäftigt."},
    )  # fmt: skip
    assert translate.use_languages(tmp_path, ["fr", "de"])
    assert ChatWords.SEND == "Senden"
    assert units.tokens(2) == "2 Tokens"
    report = ErrorReport(code=ErrorCode.ENGINE_BUSY, severity=Severity.REQUEST)
    assert sentence(report) == "Das Modell ist noch beschäftigt."
