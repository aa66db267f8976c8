"""Putting a theme on the application: font, palette, style sheet, tinted icons."""

import functools
from pathlib import Path

from PySide6.QtCore import QByteArray, QFile, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtWidgets import QApplication

from app.theme import metrics
from app.theme.palette import CONTRAST_DARK, CONTRAST_LIGHT, DARK, LIGHT, Palette
from app.theme.stylesheet import style_sheet

RESOURCES = Path(__file__).resolve().parents[2] / "resources"

_LANGUAGE = "language"
_FAMILIES = {
    "zh_CN": (
        "Noto Sans CJK SC",
        "Noto Sans SC",
        "Source Han Sans SC",
        "PingFang SC",
        "Microsoft YaHei UI",
        "WenQuanYi Micro Hei",
    ),
}
"""The system's typefaces for what Inter has no shapes for; without them Qt takes any that has."""


def use_script_of(code: str) -> None:
    """Choose typefaces that have the shapes of a language; before the theme is applied."""
    application = QGuiApplication.instance()
    if application is not None:
        application.setProperty(_LANGUAGE, code)


def load_fonts() -> None:
    """Make the shipped typeface known to Qt; a missing file leaves the system's typeface."""
    for path in sorted((RESOURCES / "fonts").glob("*.otf")):
        QFontDatabase.addApplicationFont(str(path))


def body_font() -> QFont:
    """Return the body font, with figures of equal width where Qt can ask for them."""
    application = QGuiApplication.instance()
    code = str(application.property(_LANGUAGE)) if application is not None else ""
    font = QFont(["Inter", *_FAMILIES.get(code, ())])
    font.setPixelSize(metrics.BODY_PX)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def code_font() -> QFont:
    """Return the system's monospace font at body size."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(metrics.BODY_PX)
    return font


def palette_for(theme: str) -> Palette:
    """Return the palette of ``light``, ``dark``, ``contrast`` or ``system``.

    The system says light or dark for the latter two, and may ask for high contrast itself.
    """
    if theme in ("light", "dark"):
        return DARK if theme == "dark" else LIGHT
    is_dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    if theme == "contrast" or is_high_contrast_wanted():
        return CONTRAST_DARK if is_dark else CONTRAST_LIGHT
    return DARK if is_dark else LIGHT


def is_high_contrast_wanted() -> bool:
    """Whether the system asks programs for high contrast; Qt tells since 6.10."""
    hints = QGuiApplication.styleHints()
    accessibility = hints.accessibility() if hasattr(hints, "accessibility") else None
    if accessibility is None:
        return False
    return bool(accessibility.contrastPreference() == Qt.ContrastPreference.HighContrast)


def apply_theme(application: QApplication, palette: Palette) -> None:
    """Give the whole application one palette."""
    roles = QPalette()
    for role, colour in (
        (QPalette.ColorRole.Window, palette.background),
        (QPalette.ColorRole.Base, palette.surface),
        (QPalette.ColorRole.Text, palette.text),
        (QPalette.ColorRole.WindowText, palette.text),
        (QPalette.ColorRole.ButtonText, palette.text),
        (QPalette.ColorRole.PlaceholderText, palette.dim),
        (QPalette.ColorRole.Highlight, palette.accent),
        (QPalette.ColorRole.HighlightedText, palette.on_accent),
        (QPalette.ColorRole.Link, palette.link),
    ):
        roles.setColor(role, QColor(colour))
    application.setPalette(roles)
    application.setFont(body_font())
    application.setStyleSheet(style_sheet(palette, (RESOURCES / "icons").as_posix()))


@functools.cache
def _svg_source(name: str) -> bytes:
    file = QFile(str(RESOURCES / "icons" / f"{name}.svg"))
    if not file.open(QFile.OpenModeFlag.ReadOnly):
        return b""
    return bytes(file.readAll().data())


@functools.cache
def icon(name: str, colour: str, size: int = 20) -> QIcon:
    """Return an icon of ``resources/icons`` in a colour, sharp on dense screens."""
    from PySide6.QtSvg import QSvgRenderer

    source = _svg_source(name).replace(b"#000", colour.encode())
    renderer = QSvgRenderer(QByteArray(source))
    pixmap = QPixmap(size * 2, size * 2)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter)
    painter.end()
    pixmap.setDevicePixelRatio(2)
    return QIcon(pixmap)


def application_icon() -> QIcon:
    """Return the icon of the program."""
    return QIcon(str(RESOURCES / "icons" / "larder.svg"))
