"""Putting a language on the application: words, direction, typefaces, and Qt's own words."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QLocale, QTranslator
from PySide6.QtWidgets import QApplication

from app.text.languages import (
    ENGLISH,
    SHIPPED,
    best_language,
    known_languages,
    translations_for,
)
from app.text.po_file import PoFileError
from app.text.translate import use_translations
from app.theme.apply import use_script_of


@dataclasses.dataclass(frozen=True, slots=True)
class SpokenLanguage:
    """The language in force and those that can be chosen."""

    code: str
    choices: list[tuple[str, str]]
    """Codes with the names that the languages have in themselves."""
    unread_file: str = ""
    """The file of the wanted language, where it cannot be used."""
    problem: str = ""


def speak(chosen: str, own_folder: Path, system: list[str] | None = None) -> SpokenLanguage:
    """Take a language, or where none is chosen the system's best; before any word is asked for."""
    known = known_languages([SHIPPED, own_folder])
    of_system = QLocale.system().uiLanguages() if system is None else system
    code = best_language([chosen] if chosen in known else of_system, known)
    unread, problem = "", ""
    try:
        use_translations(translations_for(code, known))
    except (OSError, PoFileError) as error:
        unread, problem = str(known[code]), getattr(error, "strerror", None) or str(error)
        code = ENGLISH
        use_translations(translations_for(code, known))
    _dress(code)
    choices = sorted(((code, _name(code)) for code in known), key=lambda item: item[1].casefold())
    return SpokenLanguage(code, choices, unread, problem)


def _name(code: str) -> str:
    locale = QLocale(code)
    name = locale.nativeLanguageName() if locale.language() is not QLocale.Language.C else ""
    return "English" if code == ENGLISH else name or code


def _dress(code: str) -> None:
    """Set direction, typefaces and the words of Qt's own dialogs and menus."""
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        return
    application.setLayoutDirection(QLocale(code).textDirection())
    use_script_of(code)
    before = application.findChild(QTranslator, "own_words")
    if before is not None:
        application.removeTranslator(before)
        before.deleteLater()
    translator = QTranslator(application)
    translator.setObjectName("own_words")
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if code != ENGLISH and translator.load(f"qtbase_{code}", folder):
        application.installTranslator(translator)


def zoomed(zoom_percent: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which Qt draws everything larger; before the application is made.

    A scale that the person gave Qt is multiplied.
    """
    if zoom_percent == 100:
        return {}
    try:
        given = float(environment.get("QT_SCALE_FACTOR", "1"))
    except ValueError:
        given = 1.0
    return {"QT_SCALE_FACTOR": f"{given * zoom_percent / 100:g}"}
