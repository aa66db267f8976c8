"""One sitting in the window: chats, branches, search, a folder, deleting and undoing."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QInputDialog,
    QLineEdit,
    QListWidget,
    QPushButton,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.text.words import ChatWords, ShellWords
from app.views import edit_dialog
from app.views.chat_list import ChatList
from tests.gui.main.conftest import StartWindow
from tests.support.menus import act
from tests.support.window import WindowDriver


def press(inside: QWidget, name: str) -> None:
    """Click the last button inside of a widget that has a name and can be pressed."""
    kinds = (QPushButton, QToolButton)
    found = [
        button
        for kind in kinds
        for button in inside.findChildren(kind)
        if button.accessibleName() == name and button.isEnabled() and not button.isHidden()
    ]
    QTest.mouseClick(found[-1], Qt.MouseButton.LeftButton)


def rows_of(chats: ChatList) -> list[str]:
    rows = chats.findChildren(QListWidget)[0]
    return [rows.item(row).text().strip() for row in range(rows.count())]


def ask(window: WindowDriver, text: str) -> None:
    window.send(text)
    window.wait_for_answer()


def test_chats_branch_are_found_moved_deleted_and_brought_back(
    qtbot: QtBot, start_window: StartWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = start_window(["first", "second", "third", "fourth"])
    page, chat = window.program.chat_view, window.program.chat
    messages, chats = page.messages, page.chat_list
    ask(window, "Bread")
    press(messages.views()[-1], ChatWords.REGENERATE)
    assert window.wait_for_answer() == "second"
    press(messages.views()[-1], ChatWords.PREVIOUS_VARIANT)
    assert [each.text for each in chat.messages] == ["Bread", "first"]
    monkeypatch.setattr(edit_dialog, "ask_text", lambda *_: "Rye bread")
    press(messages.views()[0], ChatWords.EDIT)
    window.wait_for_answer()
    assert [each.text for each in chat.messages] == ["Rye bread", "third"]
    press(messages.views()[0], ChatWords.PREVIOUS_VARIANT)
    assert chat.messages[0].text == "Bread"
    press(chats, ChatWords.NEW_CHAT)
    ask(window, "Trains")
    assert rows_of(chats) == ["Trains", "Bread"]
    search = chats.findChildren(QLineEdit)[0]
    QTest.keyClicks(search, "third")
    assert rows_of(chats) == ["Bread"]
    search.clear()
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: ("Kitchen", True))
    act(chats.menu_of(1), "Move to a folder", "New folder…")
    assert rows_of(chats) == ["▾  Kitchen", "Bread", "Trains"]
    act(chats.menu_of(1), ChatWords.DELETE)
    assert rows_of(chats) == ["Trains"]
    qtbot.waitUntil(page.notice.isVisible)
    press(page.notice, ShellWords.UNDO)
    assert rows_of(chats) == ["▾  Kitchen", "Bread", "Trains"]
    assert chat.messages[0].text == "Bread"
