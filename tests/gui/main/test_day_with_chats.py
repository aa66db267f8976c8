"""One sitting in the window: chats, branches, search, a folder, deleting and undoing."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QInputDialog,
    QLineEdit,
)
from pytestqt.qtbot import QtBot

from app.text.words import ChatWords, ShellWords
from app.views import edit_dialog
from tests.gui.main.conftest import StartWindow
from tests.support.menus import act
from tests.support.presses import press, rows_of
from tests.support.window import WindowDriver


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
