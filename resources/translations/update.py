"""Brings the translations up to the source: ``python -m resources.translations.update [CODE…]``.

Every ``.po`` file gets all texts in the order of the source, with the words it had; a text that has
none yet stands with empty words, and what no source has any more goes. A CODE that has no file yet
gets one with all texts to be filled in; its plural forms are said in its head.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from app.text.po_file import PoEntry, read_entries
from resources.translations.collect import SourceText, collect

FOLDER = Path(__file__).resolve().parent
_HEAD = (
    "Content-Type: text/plain; charset=UTF-8\n"
    "Content-Transfer-Encoding: 8bit\n"
    "Plural-Forms: nplurals=2; plural=(n != 1);\n"
)


def quoted(text: str) -> str:
    """Return a text as it stands in the file; JSON has the same escapes."""
    return json.dumps(text, ensure_ascii=False)


def written(texts: list[SourceText], old: list[PoEntry]) -> str:
    """Return the file of a language with all texts."""
    known = {entry.one: entry for entry in old}
    head = known.get("")
    lines = ['msgid ""', 'msgstr ""']
    words = head.translations.get(0, "") if head is not None else _HEAD
    lines += [quoted(line) for line in words.splitlines(keepends=True)]
    head_forms = words.partition("nplurals=")[2]
    num_forms = int(head_forms[:1] or "2")
    place = ""
    for text in texts:
        lines.append("")
        if text.place != place:
            place = text.place
            lines.append(f"#: {place}")
        entry = known.get(text.one)
        forms = dict(entry.translations) if entry is not None else {}
        if entry is not None and entry.is_fuzzy:
            lines.append("#, fuzzy")
        lines.append(f"msgid {quoted(text.one)}")
        if not text.many:
            lines.append(f"msgstr {quoted(forms.get(0, ''))}")
            continue
        lines.append(f"msgid_plural {quoted(text.many)}")
        lines += [f"msgstr[{form}] {quoted(forms.get(form, ''))}" for form in range(num_forms)]
    return "\n".join((*lines, ""))


def main(codes: Sequence[str]) -> int:
    """Rewrite all files; the status is 1 where words are still missing."""
    texts = collect()
    num_missing = 0
    for path in sorted({*FOLDER.glob("*.po"), *(FOLDER / f"{code}.po" for code in codes)}):
        before = read_entries(path.read_text(encoding="utf-8")) if path.exists() else []
        path.write_text(written(texts, before), encoding="utf-8")
        entries = read_entries(path.read_text(encoding="utf-8"))
        missing = [entry.one for entry in entries if not entry.is_translated]
        num_missing += len(missing)
        print(f"{path.name}: {len(texts)} texts, {len(missing)} without words")
        for one in missing:
            print(f"  {one}")
    return 1 if num_missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
