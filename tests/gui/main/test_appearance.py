"""Pages as they are drawn: nothing overlaps, is cut, too weak or empty; `make deep` sees more."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.state.settings import ThemeChoice
from app.views.monitor_view import MonitorView
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow
from tests.support import pseudo_language
from tests.support.picture_checks import problems
from tests.support.window import WindowDriver

SMALLEST, USUAL = (760, 520), (1360, 850)


@pytest.fixture(autouse=True)
def _colours_as_before(_language_as_before: None) -> Iterator[None]:
    yield
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    application.setStyleSheet("")


@pytest.mark.parametrize(
    ("language", "theme", "size", "pages"),
    [
        ("en", ThemeChoice.LIGHT, SMALLEST, (Page.CHAT, Page.MONITOR, Page.SETTINGS)),
        ("en", ThemeChoice.DARK, USUAL, tuple(Page)),
        ("zh_CN", ThemeChoice.CONTRAST, SMALLEST, (Page.CHAT, Page.MONITOR, Page.SETTINGS)),
        (pseudo_language.CODE, ThemeChoice.LIGHT, USUAL, (Page.CHAT, Page.MONITOR)),
    ],
    ids=["smallest", "dark", "chinese", "right_to_left"],
)
def test_pages_are_drawn_whole_and_legibly(
    start_window: StartWindow,
    language: str,
    theme: ThemeChoice,
    size: tuple[int, int],
    pages: tuple[Page, ...],
) -> None:
    home = Path(os.environ["LARDER_HOME"])
    if language == pseudo_language.CODE:
        pseudo_language.write_pseudo_language(home / "data" / "translations")
    settings = home / "settings" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"language": language}), encoding="utf-8")
    driver = start_window(["**Paris.** It lies on the Seine."])
    window = driver.program.window
    driver.program.settings.change(theme=theme)
    window.resize(*size)
    driver.send("?")
    driver.wait_for_answer()
    for page in pages:
        window.show_page(page)
        driver.qtbot.waitUntil(window.page(page).isVisible)
        found: list[str] = ["not looked at yet"]

        def is_good(page: Page = page, found: list[str] = found) -> bool:
            found[:] = problems(window, window.page(page))
            return not found

        # A page that is laid out anew is looked at again.
        driver.qtbot.waitUntil(is_good, timeout=10_000)
        assert found == []
    if language == pseudo_language.CODE:
        assert_mirrored(driver)


def assert_mirrored(driver: WindowDriver) -> None:
    """What begins at the left in English begins at the right; what time or order gives does not."""
    window = driver.program.window
    cards, view = driver.program.chat_view.cards, window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    assert window.rail.x() > window.width() / 2
    assert left_of(view.energy, window) < left_of(view.map_card, window)
    assert left_of(view.pause_button, window) < left_of(view.map_card.map, window) + 200
    assert view.energy.plot.layoutDirection() is Qt.LayoutDirection.LeftToRight
    window.show_page(Page.CHAT)
    driver.qtbot.waitUntil(cards.isVisible)
    chat = driver.program.chat_view
    assert left_of(cards, window) < left_of(chat.composer, window)
    assert left_of(chat.composer, window) < left_of(chat.chat_list, window)
    letters = {letter for label in window.findChildren(QLabel) for letter in label.text()}
    assert letters & set("ابتثج")


def left_of(widget: QWidget, window: QWidget) -> int:
    return widget.mapTo(window, QPoint(0, 0)).x()


def test_words_that_overlap_are_cut_or_too_weak_are_found(
    start_window: StartWindow, qtbot: QtBot
) -> None:
    driver = start_window(["Yes."])
    window = driver.program.window
    window.resize(*USUAL)
    page = window.page(Page.CHAT)
    weak = QLabel("hardly seen", page)
    weak.setStyleSheet("background: #777777; color: #888888")
    narrow = QLabel("much too long for its place", page)
    first, second = QLabel("first", page), QLabel("second", page)
    for index, item in enumerate((weak, narrow, first, second)):
        item.setGeometry(300, 60 + 30 * min(index, 2), 30 if item is narrow else 200, 24)
        item.raise_()
        item.show()
    qtbot.waitUntil(second.isVisible)
    found = "\n".join(problems(window, page))
    assert "'hardly seen'" in found
    assert "contrast 1." in found
    assert "cut: 'much too long for its place'" in found
    assert "overlap: 'first' and 'second'" in found
