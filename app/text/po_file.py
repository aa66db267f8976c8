"""Reading a ``.po`` file, the form in which translations are written and kept.

It is turned into the table that ``gettext`` reads, which then knows plural forms by itself. What is
marked as fuzzy or has no words is left out, so that its English is shown.
"""

import dataclasses
import gettext
import io
import json
import re
import struct
from collections.abc import Iterator

_MAGIC = 0x950412DE
_LINE = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)?\s*(".*")\Z')


class PoFileError(ValueError):
    """A file that is no list of translations; the text says where."""


@dataclasses.dataclass(slots=True)
class PoEntry:
    """One text with its translations, one for each plural form."""

    one: str | None = None
    many: str = ""
    translations: dict[int, str] = dataclasses.field(default_factory=dict)
    is_fuzzy: bool = False

    @property
    def is_translated(self) -> bool:
        """Whether every form has words that somebody has seen."""
        return bool(self.translations) and all(self.translations.values()) and not self.is_fuzzy


def read_entries(text: str) -> list[PoEntry]:
    """Return the entries of a file, its head (whose text is empty) included."""
    return list(_entries(text))


def translations_of(text: str) -> gettext.GNUTranslations:
    """Return the translations of a file; raises ``PoFileError`` where it cannot be read."""
    table: dict[str, str] = {}
    for entry in _entries(text):
        if entry.one is None or not entry.is_translated:
            continue
        key = f"{entry.one}\0{entry.many}" if entry.many else entry.one
        table[key] = "\0".join(entry.translations[form] for form in sorted(entry.translations))
    if "charset=utf-8" not in table.get("", "").lower():
        raise PoFileError("its head does not say charset=UTF-8")
    try:
        return gettext.GNUTranslations(io.BytesIO(_compiled(table)))
    except (ValueError, SyntaxError) as error:
        raise PoFileError(f"its head cannot be understood ({error})") from error


def _entries(text: str) -> Iterator[PoEntry]:
    entry, part, form = PoEntry(), "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("#"):
            if part.startswith("msgstr"):
                yield entry
                entry, part = PoEntry(), ""
            entry.is_fuzzy |= line.startswith("#,") and "fuzzy" in line
            continue
        if not line:
            continue
        match = _LINE.fullmatch(line)
        if match is None or not (match[1] or part):
            raise PoFileError(f"line {number} is no part of a translation: {line[:60]}")
        if match[1] in ("msgid", "msgctxt") and part.startswith("msgstr"):
            yield entry
            entry = PoEntry()
        part, form = (match[1], int(match[2] or 0)) if match[1] else (part, form)
        _take(entry, part, form, _unquoted(match[3], number))
    if part.startswith("msgstr"):
        yield entry


def _take(entry: PoEntry, part: str, form: int, words: str) -> None:
    if part == "msgid":
        entry.one = (entry.one or "") + words
    elif part == "msgid_plural":
        entry.many += words
    elif part.startswith("msgstr"):
        entry.translations[form] = entry.translations.get(form, "") + words


def _unquoted(quoted: str, number: int) -> str:
    """Return the text of a quoted string, whose escapes are those of JSON."""
    try:
        return str(json.loads(quoted))
    except ValueError as error:
        raise PoFileError(
            f"line {number} has a quote that cannot be read: {quoted[:60]}"
        ) from error


def _compiled(table: dict[str, str]) -> bytes:
    """Return a ``.mo`` file: a head of seven words, two tables of lengths and places, the texts."""
    pairs = [(key.encode(), value.encode()) for key, value in sorted(table.items())]
    head = 28
    offset = head + 16 * len(pairs)
    tables, data = [b"", b""], bytearray()
    for column in (0, 1):
        for pair in pairs:
            tables[column] += struct.pack("<II", len(pair[column]), offset + len(data))
            data += pair[column] + b"\0"
    start = struct.pack("<7I", _MAGIC, 0, len(pairs), head, head + 8 * len(pairs), 0, 0)
    return start + b"".join(tables) + bytes(data)
