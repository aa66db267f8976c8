"""Pages as they are drawn: nothing overlaps, is cut, too weak or empty; `make deep` sees more."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.state.settings import ThemeChoice
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow
from tests.support.picture_checks import problems

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
    ],
    ids=["smallest", "dark", "chinese"],
)
def test_pages_are_drawn_whole_and_legibly(
    start_window: StartWindow,
    language: str,
    theme: ThemeChoice,
    size: tuple[int, int],
    pages: tuple[Page, ...],
) -> None:
    settings = Path(os.environ["LARDER_HOME"], "settings", "settings.json")
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
