"""What the window takes from the system and from the time before: colours, contrast, its place."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.state.settings import ThemeChoice
from app.theme import apply
from app.theme.palette import CONTRAST_DARK, DARK, LIGHT, Palette
from app.views.main_window import MainWindow
from tests.gui.main.conftest import StartWindow


def shown() -> str:
    """The colour of the window's ground."""
    return QApplication.palette().color(QPalette.ColorRole.Window).name().upper()


def test_colours_follow_the_system_while_the_window_is_open(
    start_window: StartWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start_window(is_loading=False).program
    hints = QApplication.styleHints()

    class System:
        """The system as it is from now on."""

        scheme = Qt.ColorScheme.Light
        instance = QGuiApplication.instance

        @classmethod
        def styleHints(cls) -> type[System]:
            return cls

        @classmethod
        def colorScheme(cls) -> Qt.ColorScheme:
            return cls.scheme

    def expect(palette: Palette) -> None:
        hints.colorSchemeChanged.emit(System.scheme)
        assert shown() == palette.background.upper()

    monkeypatch.setattr(apply, "QGuiApplication", System)
    program.settings.change(theme=ThemeChoice.SYSTEM)
    expect(LIGHT)
    System.scheme = Qt.ColorScheme.Dark
    expect(DARK)
    monkeypatch.setattr(apply, "is_high_contrast_wanted", lambda: True)
    expect(CONTRAST_DARK)
    # What the person chose stays.
    program.settings.change(theme=ThemeChoice.LIGHT)
    expect(LIGHT)


def test_window_opens_where_and_as_large_as_it_was(qtbot: QtBot) -> None:
    before, after, other = MainWindow(LIGHT), MainWindow(LIGHT), MainWindow(LIGHT)
    for window in (before, after, other):
        qtbot.addWidget(window)
    before.setGeometry(15, 45, 770, 540)
    before.show()
    after.take_geometry(before.geometry_text())
    assert after.geometry() == before.geometry()
    size = other.size()
    for text in ("", "not base 64", "bm90IG91cnM="):
        other.take_geometry(text)
    assert other.size() == size
