"""A link of an answer: shown as it is before it is opened, and only where a person says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QMessageBox, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from app.text.view_words import LinkWords
from app.views import link_dialog

Answer = Callable[[str], None]
MAX_WIDTH = 800
LONG = "a" * 3000


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
def shown() -> list[str]:
    """The address of every dialog that was asked, which has all its letters in view or scrolls."""
    return []


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, shown: list[str]) -> Answer:
    """Have a person press a button of the next dialogs."""

    def choose(words: str) -> None:
        def press(box: QMessageBox) -> None:
            box.show()
            (view,) = box.findChildren(QPlainTextEdit)
            shown.append(view.toPlainText())
            assert view.isVisible()
            assert view.horizontalScrollBar().maximum() == 0, "no letter is beside the view"
            assert box.width() < MAX_WIDTH
            assert box.height() < MAX_WIDTH
            assert all(box.rect().contains(each.geometry()) for each in box.buttons())
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


@pytest.mark.parametrize(
    ("address", "shown_so"),
    [
        (
            "https://evil.example/<a href='x'>https://bank.example</a>",
            "https://evil.example/%3Ca%20href='x'%3Ehttps://bank.example%3C/a%3E",
        ),
        ("https://\u0430pple.com/", "https://xn--pple-43d.com/"),
        ("https://evil.example/\u202emoc.knab", "https://evil.example/%E2%80%AEmoc.knab"),
        (f"https://bank.example@evil.example/{LONG}", f"https://bank.example@evil.example/{LONG}"),
    ],
    ids=["markup", "letters that look alike", "turned", "long"],
)
def test_address_is_shown_letter_by_letter(
    qtbot: QtBot, opened: list[str], answer: Answer, shown: list[str], address: str, shown_so: str
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    answer(str(LinkWords.KEEP))
    link_dialog.ask_to_open(widget, address)
    assert shown == [shown_so]
    assert opened == []


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
        "mailto:a@b?subject=x&Attach=/etc/passwd",
        "",
    ],
)
def test_what_is_no_page_and_no_mailbox_is_not_even_asked_for(
    qtbot: QtBot, opened: list[str], answer: Answer, shown: list[str], address: str
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    answer(str(LinkWords.OPEN))
    link_dialog.ask_to_open(widget, address)
    assert shown == opened == []
