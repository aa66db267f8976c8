"""Which languages there are, and which of them the window speaks.

English is in the source. Every other language is one file ``CODE.po`` (``zh_CN.po``, ``fr.po``) in
one of the folders of translations; a file that a person puts there is enough.
"""

import gettext
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from app.text.po_file import PoFileError, translations_of

ENGLISH = "en"
SHIPPED = Path(__file__).resolve().parents[2] / "resources" / "translations"


def known_languages(folders: Iterable[Path]) -> dict[str, Path | None]:
    """Return the codes of all languages with their files; a later folder replaces an earlier one.

    A folder that is not there has none.
    """
    found: dict[str, Path | None] = {ENGLISH: None}
    for folder in folders:
        for path in sorted(folder.glob("*.po")):
            found[_plain(path.stem)] = path
    return found


def best_language(wanted: Sequence[str], known: Iterable[str]) -> str:
    """Return the known language that fits the first of the wanted ones that any fits."""
    codes = list(known)
    for code in wanted:
        fitting = [known_code for known_code in codes if _fits(code, known_code)]
        if fitting:
            return max(fitting, key=lambda known_code: known_code == _plain(code))
    return ENGLISH


def translations_for(code: str, known: Mapping[str, Path | None]) -> gettext.NullTranslations:
    """Return the words of a known language.

    Raises ``OSError`` or ``PoFileError`` for a file that cannot be used.
    """
    path = known.get(code)
    if path is None:
        return gettext.NullTranslations()
    try:
        return translations_of(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise PoFileError("it is not written in UTF-8") from error


def environment_languages(environment: Mapping[str, str]) -> list[str]:
    """Return the wanted languages by the variables that terminals use, the first one first."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environment.get(name, "")
        if value:
            break
    else:
        return []
    if value.partition(".")[0] in ("C", "POSIX"):
        return []
    listed = environment.get("LANGUAGE", "")
    return [part.partition(".")[0] for part in listed.split(":") if part] or [
        value.partition(".")[0]
    ]


def _plain(code: str) -> str:
    """Return a code as files are named: language and territory, ``zh_CN``."""
    return code.replace("-", "_")


def _fits(wanted: str, known: str) -> bool:
    """Whether somebody who wants one language is served by another.

    Where both name a script or a territory these have to agree: ``zh-Hant-TW`` is not ``zh_CN``.
    """
    language, *rest = _plain(wanted).split("_")
    known_language, *known_rest = _plain(known).split("_")
    if language.lower() != known_language.lower():
        return False
    return not rest or not known_rest or rest[-1].lower() == known_rest[-1].lower()
