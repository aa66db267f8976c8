"""Screen readers and keyboards: names, roles, focus, keys, what is said."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app.state.settings import ThemeChoice
from app.state.stages import Stage
from app.text.monitor_words import LiveWords, MapWords
from app.text.shortcut_words import Shortcut, shortcut_lines
from app.text.words import ModelWords
from app.views import announce
from app.views.monitor_view import MonitorView
from app.views.rail import Page
from app.views.settings_view import SettingsView
from tests.gui.main.conftest import StartWindow
from tests.support.accessibility import (
    controls,
    interface_of,
    is_focus_seen,
    name_of,
    takes_tab,
    tour,
    unnamed,
)
from tests.support.window import WindowDriver

ANSWER = "**Paris.** See:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n"


@pytest.fixture
def window(start_window: StartWindow, qtbot: QtBot) -> WindowDriver:
    """A window with an answer in it that has all kinds of pieces."""
    driver = start_window([ANSWER])
    driver.send("What is the capital of France?")
    driver.wait_for_answer()
    driver.program.window.activateWindow()
    qtbot.waitUntil(driver.program.window.isActiveWindow)
    return driver


def go(driver: WindowDriver, page: Page) -> QWidget:
    """Go to a page and wait until it is drawn; return its button in the rail."""
    main = driver.program.window
    main.show_page(page)
    driver.qtbot.waitUntil(lambda: main.page(page).isVisible())
    QApplication.processEvents()
    return next(item for item in main.rail.findChildren(QAbstractButton) if item.isChecked())


def test_every_control_of_every_page_has_a_name_a_role_and_its_turn(window: WindowDriver) -> None:
    main = window.program.window
    for page in Page:
        start = go(window, page)
        assert unnamed(main) == [], page
        visited = tour(main, start)
        passed_over = [
            name_of(widget)
            for widget in controls(main)
            if widget not in visited and not is_reached_by_arrows(widget, visited)
        ]
        assert passed_over == [], page
        unseen = [name_of(widget) for widget in visited if not is_focus_seen(main, widget)]
        assert unseen == [], page


def test_focus_is_seen_in_high_contrast_too(window: WindowDriver) -> None:
    window.program.settings.change(theme=ThemeChoice.CONTRAST)
    main = window.program.window
    for page in Page:
        visited = tour(main, go(window, page))
        unseen = [name_of(widget) for widget in visited if not is_focus_seen(main, widget)]
        assert unseen == [], page


def is_reached_by_arrows(widget: QWidget, visited: list[QWidget]) -> bool:
    """Whether a button belongs to a group of which Tab visits the chosen one."""
    group = widget.group() if isinstance(widget, QAbstractButton) else None
    return group is not None and any(button in visited for button in group.buttons())


def test_arrow_keys_go_from_page_to_page_in_the_rail(window: WindowDriver) -> None:
    main = window.program.window
    go(window, Page.CHAT).setFocus(Qt.FocusReason.TabFocusReason)
    for page in (Page.MODELS, Page.MONITOR, Page.SETTINGS):
        press(Qt.Key.Key_Down)
        assert main.current_page() is page
    press(Qt.Key.Key_Up)
    assert main.current_page() is Page.MONITOR


def test_pictures_say_what_they_show(window: WindowDriver) -> None:
    main = window.program.window
    go(window, Page.MONITOR)
    view = main.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    for picture in (view.map_card.map, view.throughput.plot, view.energy.plot):
        assert interface_of(picture).role() is QAccessible.Role.Graphic
        assert name_of(picture)
    window.qtbot.waitUntil(lambda: view.map_card.map.accessibleDescription() != "")


def test_areas_that_scroll_have_names(window: WindowDriver) -> None:
    main = window.program.window
    for page in Page:
        go(window, page)
        names = [
            area.accessibleName()
            for area in main.findChildren(QScrollArea)
            if area.isVisibleTo(main) and takes_tab(area)
        ]
        assert names
        assert all(names)


def test_a_whole_visit_needs_no_mouse(window: WindowDriver) -> None:
    """Ask, look at the Monitor and pause it, change the colours, unload: by keys alone."""
    program, qtbot = window.program, window.qtbot
    assert QApplication.focusWidget() is program.chat_view.composer.edit
    QTest.keyClicks(program.chat_view.composer.edit, "And of Italy?")
    press(Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(program.chat.messages) == 4)
    window.wait_for_answer()

    window.press(Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    tab_to(LiveWords.PAUSE)
    press(Qt.Key.Key_Space)
    view = program.window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    assert view.clock.is_paused
    use = next(
        item for item in view.map_card.findChildren(QAbstractButton) if item.text() == MapWords.USE
    )
    use.setFocus(Qt.FocusReason.TabFocusReason)
    press(Qt.Key.Key_Return)
    assert use.isChecked(), "Enter presses as Space does"
    tab_to("Expert map")
    qtbot.waitUntil(lambda: not view.map_card.map.grid.is_empty)
    press(Qt.Key.Key_Right)
    said = [item.text() for item in view.map_card.findChildren(QLabel)]
    assert any("expert" in text and "layer" in text for text in said)

    window.press(Qt.Key.Key_4, Qt.KeyboardModifier.ControlModifier)
    tab_to("Colours")
    press(Qt.Key.Key_End)
    # A closed list of choices takes the choice when it is confirmed.
    press(Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: program.settings.values.theme is ThemeChoice.CONTRAST)

    window.press(Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    tab_to(ModelWords.UNLOAD)
    press(Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: program.session.loaded is None)
    # The runtime that starts anew answers before the window is closed.
    qtbot.waitUntil(lambda: program.session.stage not in (Stage.STOPPING, Stage.NO_RUNTIME))


def press(key: Qt.Key) -> None:
    """Press a key where the focus is."""
    widget = QApplication.focusWidget()
    assert widget is not None
    QTest.keyClick(widget, key)


def tab_to(name: str) -> None:
    """Press Tab until the control with this name has the focus."""
    passed = []
    for _ in range(60):
        widget = QApplication.focusWidget()
        assert widget is not None
        passed.append(name_of(widget))
        if passed[-1] == name:
            return
        QTest.keyClick(widget, Qt.Key.Key_Tab)
    raise AssertionError(f"{name} is not among {passed}")


def test_keys_are_listed_and_each_of_them_works(window: WindowDriver) -> None:
    main = window.program.window
    there = {shortcut.key().toString() for shortcut in main.findChildren(QShortcut)}
    assert there == {QKeySequence(key.value).toString() for key in Shortcut}
    window.press(Qt.Key.Key_F1)
    page = main.page(Page.SETTINGS)
    assert isinstance(page, SettingsView)
    assert main.current_page() is Page.SETTINGS
    assert page.keys.hasFocus()
    window.qtbot.waitUntil(lambda: not page.keys.visibleRegion().isEmpty())
    shown = [item.text() for item in page.keys.findChildren(QLabel)]
    assert "Space, Enter" in shown
    for keys, what in shortcut_lines():
        assert keys in shown
        assert what in shown
        assert what in page.keys.accessibleDescription()


def test_model_and_answer_are_said_when_they_are_there(
    start_window: StartWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Listener:
        @staticmethod
        def updateAccessibility(event: object) -> None:
            said.append(event.message())  # type: ignore[attr-defined]

    monkeypatch.setattr(announce, "QAccessible", Listener)
    driver = start_window(["Paris."])
    assert said == ["a model is loaded and can be asked."]
    driver.send("What is the capital of France?")
    driver.wait_for_answer()
    assert said[1:] == ["Answer: Paris."]
