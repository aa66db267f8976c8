"""Where the words of the window go through gettext; English is the language of the source."""

import gettext


class _Catalogue:
    """The translations in use; replaced once at the start, before any word is asked for."""

    current: gettext.NullTranslations = gettext.NullTranslations()


def use_translations(translations: gettext.NullTranslations) -> None:
    """Take these from now on; words that were asked for before stay as they are."""
    _Catalogue.current = translations


def tr(text: str) -> str:
    """Return the words for an English text."""
    return _Catalogue.current.gettext(text)


def trn(one: str, many: str, count: int) -> str:
    """Return the words for one or many, with ``{count}`` still to be filled in."""
    return _Catalogue.current.ngettext(one, many, count)
