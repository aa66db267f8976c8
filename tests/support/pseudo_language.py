"""A made-up language from right to left: every word of the window in Arabic letters.

Placeholders, and the length of each text, stay as they are.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from resources.translations.collect import collect

CODE = "ar"
_PART = re.compile(r"(\{[^}]*\}|%[^%]*%)")
_LETTERS = "ابتثجحخدذرزسشصضطظعغفقكلمنه"
_HEAD = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n'
)


def write_pseudo_language(folder: Path) -> None:
    """Put the language where a person would put one of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [_HEAD]
    for text in collect():
        if text.many:
            entries.append(
                f"msgid {json.dumps(text.one)}\nmsgid_plural {json.dumps(text.many)}\n"
                f"msgstr[0] {json.dumps(_other(text.one))}\n"
                f"msgstr[1] {json.dumps(_other(text.many))}\n"
            )
        else:
            entries.append(f"msgid {json.dumps(text.one)}\nmsgstr {json.dumps(_other(text.one))}\n")
    (folder / f"{CODE}.po").write_text("\n".join(entries), encoding="utf-8")


def _other(text: str) -> str:
    """Return a text with other letters where it has any."""
    return "".join(
        part if _PART.fullmatch(part) else "".join(map(_letter, part)) for part in _PART.split(text)
    )


def _letter(letter: str) -> str:
    place = ord(letter.lower()) - ord("a")
    return _LETTERS[place] if 0 <= place < len(_LETTERS) else letter
