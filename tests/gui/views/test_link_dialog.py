"""A link of an answer: shown as it is before it is opened, and only where a person says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtWidgets import QLabel, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.text.view_words import LinkWords
from app.views import link_dialog

Answer = Callable[[str], None]


class Desktop:
    """What is opened in other programs, written down in place of being opened."""

    opened: list[str]

    @classmethod
    def openUrl(cls, url: QUrl) -> None:
        cls.opened.append(url.toString())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    Desktop.opened = []
    monkeypatch.setattr(link_dialog, "QDesktopServices", Desktop)
    return Desktop.opened


@pytest.fixture
def shown() -> list[tuple[str, Qt.TextFormat]]:
    """Every text of the dialogs that were asked, and how it is drawn."""
    return []


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, shown: list[tuple[str, Qt.TextFormat]]) -> Answer:
    """Have a person press a button of the next dialogs."""

    def choose(words: str) -> None:
        def press(box: QMessageBox) -> None:
            shown.extend((label.text(), label.textFormat()) for label in box.findChildren(QLabel))
            (button,) = (each for each in box.buttons() if each.text() == words)
            button.click()

        monkeypatch.setattr(QMessageBox, "exec", press)

    return choose


@pytest.mark.parametrize("address", ["https://a.example/x?y=1", "http://a.example/", "mailto:a@b"])
def test_link_is_opened_once_a_person_agrees(
    qtbot: QtBot, opened: list[str], answer: Answer, address: str
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    answer(str(LinkWords.KEEP))
    link_dialog.ask_to_open(widget, address)
    assert opened == []
    answer(str(LinkWords.OPEN))
    link_dialog.ask_to_open(widget, address)
    assert opened == [address]


def test_address_is_shown_letter_by_letter(
    qtbot: QtBot, opened: list[str], answer: Answer, shown: list[tuple[str, Qt.TextFormat]]
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    answer(str(LinkWords.KEEP))
    address = "https://evil.example/<a href='x'>https://bank.example</a>"
    link_dialog.ask_to_open(widget, address)
    assert (address, Qt.TextFormat.PlainText) in shown


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "smb://server/share",
        "//server/share",
        "ms-settings:",
        "data:text/html,x",
        "C:\\Windows\\notepad.exe",
        "",
    ],
)
def test_what_is_no_page_and_no_mailbox_is_not_even_asked_for(
    qtbot: QtBot, opened: list[str], answer: Answer, shown: list[object], address: str
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    answer(str(LinkWords.OPEN))
    link_dialog.ask_to_open(widget, address)
    assert shown == opened == []
