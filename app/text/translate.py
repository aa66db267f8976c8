"""Where the words of the window go through gettext; English is the language of the source."""

import gettext
from pathlib import Path

DOMAIN = "larder"


class _Catalogue:
    """The translations in use; replaced once at the start, before any word is asked for."""

    current: gettext.NullTranslations = gettext.NullTranslations()


def use_languages(folder: Path, languages: list[str]) -> bool:
    """Take the first of these languages that has translations; return whether one has."""
    found = gettext.translation(DOMAIN, str(folder), languages, fallback=True)
    _Catalogue.current = found
    return isinstance(found, gettext.GNUTranslations)


def tr(text: str) -> str:
    """Return the words for an English text."""
    return _Catalogue.current.gettext(text)


def trn(one: str, many: str, count: int) -> str:
    """Return the words for one or many, with ``{count}`` still to be filled in."""
    return _Catalogue.current.ngettext(one, many, count)
