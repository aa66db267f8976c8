"""Words of the settings of the window's looks."""

from app.text.translate import tr
from app.text.units import percent
from app.text.words import Word


class AppearanceWords:
    """Fixed words."""

    THEME_CONTRAST = Word("High contrast")
    LANGUAGE = Word("Language")
    SIZE = Word("Size of text and controls")
    AFTER_RESTART = Word("Language and size change when Larder is started again.")
    RESTART = Word("Start again now")


def zoom_name(zoom_percent: int) -> str:
    """For example ``125 %``."""
    return percent(zoom_percent / 100)


def language_not_read(path: str, reason: str) -> str:
    """Say that the file of a language cannot be used."""
    return tr(
        "The translation {path} cannot be used ({reason}), so English is shown. Mend the file, or "
        "choose another language in the settings."
    ).format(path=path, reason=reason)
