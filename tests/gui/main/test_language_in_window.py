"""The window in another language: every page, its direction, and the way back."""

import json
import os
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.language import speak, zoomed
from app.link import interpreter
from app.main import StartOptions
from app.text import translate
from app.text.languages import SHIPPED
from app.text.po_file import read_entries, translations_of
from app.theme import metrics
from app.theme.palette import LIGHT
from app.views.notice_bar import NoticeSource
from app.views.rail import Page, Rail
from app.views.settings_view import SettingsView
from tests.support.window import WindowDriver

OPTIONS = StartOptions(is_demo_wanted=False, runtime_arguments=("--engine", "scripted"))


pytestmark = pytest.mark.usefixtures("_language_as_before")


def home() -> Path:
    return Path(os.environ["LARDER_HOME"])


def _told(driver: WindowDriver) -> str:
    row = driver.program.window.notice.row(NoticeSource.SETTINGS)
    return row.text() if row is not None else ""


def choose(language: str) -> None:
    path = home() / "settings" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"language": language}), encoding="utf-8")


def texts_of(driver: WindowDriver) -> list[str]:
    window = driver.program.window
    for page in Page:
        window.show_page(page)
    labels = [item.text() for item in window.findChildren(QLabel)]
    return [*labels, *(item.text() for item in window.findChildren(QAbstractButton))]


def test_window_speaks_chinese_on_every_page(qtbot: QtBot) -> None:
    choose("zh_CN")
    driver = WindowDriver(qtbot, OPTIONS)
    try:
        texts = texts_of(driver)
        assert {"对话", "模型", "监视", "设置", "外观"} <= set(texts)
        entries = read_entries((SHIPPED / "zh_CN.po").read_text(encoding="utf-8"))
        other = {entry.one for entry in entries if entry.translations[0] != entry.one}
        assert other.intersection(filter(None, texts)) == set()
        assert QApplication.font().families()[0] == "Inter"
        assert "Noto Sans CJK SC" in QApplication.font().families()
    finally:
        driver.close()


def test_window_of_a_language_from_right_to_left_is_mirrored(qtbot: QtBot) -> None:
    folder = home() / "data" / "translations"
    folder.mkdir(parents=True)
    (folder / "ar.po").write_text(
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
        'msgid "Settings"\nmsgstr "الإعدادات"\n',
        encoding="utf-8",
    )
    choose("ar")
    driver = WindowDriver(qtbot, OPTIONS)
    try:
        window = driver.program.window
        window.resize(1100, 700)
        assert "الإعدادات" in texts_of(driver)
        assert window.layoutDirection() is Qt.LayoutDirection.RightToLeft
        qtbot.waitUntil(lambda: window.rail.x() > window.width() / 2)
        assert window.strip.geometry().right() <= window.rail.geometry().left()
    finally:
        driver.close()


def test_translation_that_cannot_be_read_is_told_and_english_shown(qtbot: QtBot) -> None:
    folder = home() / "data" / "translations"
    folder.mkdir(parents=True)
    (folder / "fr.po").write_text("Bonjour", encoding="utf-8")
    choose("fr")
    driver = WindowDriver(qtbot, OPTIONS)
    try:
        assert "Settings" in texts_of(driver)
        told = _told(driver)
        assert "fr.po" in told
        assert "line 1" in told
    finally:
        driver.close()


def test_language_of_the_system_is_taken_where_none_is_chosen(qtbot: QtBot) -> None:
    assert speak("", Path("none"), ["zh-Hans-CN", "en"]).code == "zh_CN"
    assert speak("xx", Path("none"), ["fr", "en"]).code == "en"
    spoken = speak("en", Path("none"), ["zh-CN"])
    assert spoken.code == "en"
    assert ("zh_CN", "简体中文") in spoken.choices
    assert ("en", "English") in spoken.choices


def test_chosen_language_offers_a_restart_that_starts_the_program_again(qtbot: QtBot) -> None:
    driver = WindowDriver(qtbot, OPTIONS)
    try:
        driver.program.window.show_page(Page.SETTINGS)
        page = driver.program.window.page(Page.SETTINGS)
        assert isinstance(page, SettingsView)
        card = page.appearance
        assert not card.restart_button.isVisible()
        card.language.setCurrentIndex(card.language.findData("zh_CN"))
        card.language.activated.emit(card.language.currentIndex())
        assert driver.program.settings.values.language == "zh_CN"
        assert card.restart_button.isVisible()
        card.restart_button.click()
        assert driver.program.is_restart_wanted
        assert not driver.program.window.isVisible()
    finally:
        driver.close()


def test_restart_runs_the_same_program_apart_from_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[tuple[list[str], dict[str, object]]] = []
    monkeypatch.setattr("subprocess.Popen", lambda command, **how: started.append((command, how)))
    interpreter.start_apart("app", ["--no-demo"], {"HOME": "/h"})
    command, how = started[0]
    assert command[-3:] == ["-m", "app", "--no-demo"]
    assert how["start_new_session"]
    assert isinstance(how["env"], dict)
    assert how["env"]["HOME"] == "/h"


@pytest.mark.parametrize(
    ("percent", "given", "expected"),
    [(100, {}, {}), (150, {}, "1.5"), (200, {"QT_SCALE_FACTOR": "1.25"}, "2.5"),
     (125, {"QT_SCALE_FACTOR": "large"}, "1.25")],
)  # fmt: skip
def test_size_is_a_scale_for_qt(percent: int, given: dict[str, str], expected: object) -> None:
    scaled = zoomed(percent, given)
    assert scaled == (expected and {"QT_SCALE_FACTOR": expected})


def test_rail_is_as_wide_as_its_longest_name(qtbot: QtBot) -> None:
    usual = Rail(LIGHT)
    qtbot.addWidget(usual)
    translate.use_translations(
        translations_of(
            'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
            'msgid "Settings"\nmsgstr "Einstellungen"\n'
        )
    )
    wide = Rail(LIGHT)
    qtbot.addWidget(wide)
    assert metrics.RAIL_WIDTH <= usual.width() < wide.width() <= metrics.MAX_RAIL_WIDTH
    for button in wide.findChildren(QAbstractButton):
        assert button.fontMetrics().horizontalAdvance(button.text()) <= button.width() - 6
