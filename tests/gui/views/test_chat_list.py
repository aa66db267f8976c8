"""The list of chats: pinned ones, their menu, and files with chats."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QListWidget, QMenu, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.state.chat_values import ChatHeading
from app.theme.palette import DARK, LIGHT
from app.views.chat_list import ChatList
from app.views.chat_view import ChatView
from app.views.notice_bar import NoticeSource
from tests.support.monitor_stage import MonitorStage
from tests.support.played_answers import talk

CHATS = [ChatHeading(7, "Bread", 2.0, is_pinned=True), ChatHeading(8, "Trains", 3.0)]


@pytest.fixture
def chats(qtbot: QtBot) -> ChatList:
    view = ChatList(LIGHT)
    qtbot.addWidget(view)
    view.show_chats(CHATS, 8, is_searching=False)
    return view


def act(menu: QMenu, name: str) -> None:
    next(action for action in menu.actions() if action.text() == name).trigger()
    menu.close()


def list_titles(view: ChatView) -> list[str]:
    rows = view.chat_list.findChildren(QListWidget)[0]
    return [rows.item(row).text() for row in range(rows.count())]


def test_pinned_chat_is_marked_for_eyes_and_screen_readers(chats: ChatList) -> None:
    rows = chats.findChildren(QListWidget)[0]
    pinned, other = rows.item(0), rows.item(1)
    assert not pinned.icon().isNull()
    assert other.icon().isNull()
    assert pinned.data(Qt.ItemDataRole.AccessibleTextRole) == "Pinned: Bread"
    before = pinned.icon().cacheKey()
    chats.show_palette(DARK)
    assert pinned.icon().cacheKey() != before


@pytest.mark.parametrize(
    ("row", "name", "wanted"), [(0, "Unpin", False), (1, "Pin to the top", True)]
)
def test_menu_pins_and_lets_go(
    chats: ChatList, qtbot: QtBot, row: int, name: str, wanted: bool
) -> None:
    with qtbot.waitSignal(chats.pin_wanted) as pinned:
        act(chats.menu_of(row), name)
    assert pinned.args == [CHATS[row].chat_id, wanted]


def test_chat_saved_as_json_is_brought_in_again(
    page: ChatView,
    stage: MonitorStage,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = page._chat
    talk(state, stage.client, "Why sour?", "Acids.")
    assert state.chat_id is not None
    place = tmp_path / "bread.json"
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *_: (str(place), "JSON, to bring in again (*.json)")
    )
    act(page.chat_list.menu_of(0), "Save…")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(place), ""))
    (more,) = [
        each
        for each in page.chat_list.findChildren(QToolButton)
        if each.popupMode() is QToolButton.ToolButtonPopupMode.InstantPopup
    ]
    with qtbot.waitSignal(state.imported):
        more.menu().actions()[0].trigger()
    assert list_titles(page) == ["Why sour?", "Why sour?"]
    assert page.notice.text() == "1 chat was brought in."
    act(page.chat_list.menu_of(1), "Pin to the top")
    assert [chat.is_pinned for chat in state.chats] == [True, False]


def test_chat_saved_as_markdown_is_what_a_person_reads(
    page: ChatView, stage: MonitorStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(page._chat, stage.client, "Why sour?", "Acids.")
    place = tmp_path / "bread.md"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), "Markdown (*.md)"))
    act(page.chat_list.menu_of(0), "Save…")
    assert place.read_text(encoding="utf-8").startswith("# Why sour?\n")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path), ""))
    act(page.chat_list.menu_of(0), "Save…")
    assert "Is a directory" in page.notice.text()


@pytest.mark.parametrize(
    ("content", "told", "detail"),
    [
        (None, "cannot be read (No such file or directory)", ""),
        (b"# Bread", "No chats were found in", "not JSON"),
    ],
)
def test_file_without_chats_is_told_with_what_to_do(
    page: ChatView, qtbot: QtBot, tmp_path: Path, content: bytes | None, told: str, detail: str
) -> None:
    place = tmp_path / "bread.json"
    if content is not None:
        place.write_bytes(content)
    page.files.bring_in(place)
    qtbot.waitUntil(lambda: told in page.notice.text())
    assert detail in "".join(row._detail_text for row in page.notice._rows.values())
    assert list_titles(page) == []


def test_long_file_is_told_of_while_it_is_read_and_how_it_ended(
    page: ChatView, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.import_flow.TELL_INTERVAL_S", 0.0)
    monkeypatch.setattr("app.state.import_flow.SLICE_S", 0.0)
    chat = {"title": "a", "messages": [{"role": "user", "content": "x" * 5000}]}
    place = tmp_path / "export.json"
    place.write_text(json.dumps([chat] * 200))
    page.files.bring_in(place)
    qtbot.waitUntil(lambda: "Reading export.json: " in page.notice.text())
    row = page.notice._rows[NoticeSource.IMPORT]
    before = page.notice.text()
    qtbot.waitUntil(lambda: page.notice.text() != before)
    (stop,) = [each for each in row.findChildren(QPushButton) if each.text() == "Stop reading"]
    stop.click()
    assert page.notice.text().endswith("The rest of export.json was not read.")
    assert 0 < len(page._chat.chats) < 200
    monkeypatch.setattr("app.state.chat_stream.MAX_CHAT_BYTES", 4000)
    small = {"title": "b", "messages": [{"role": "user", "content": "y"}]}
    place.write_text(json.dumps([small, chat])[:-1] + "}")
    page.files.bring_in(place)
    qtbot.waitUntil(
        lambda: (
            page.notice.text()
            == "1 chat was brought in. 1 chat was left out, because it is too large to be read. "
            "Then export.json breaks off. Export it once more to bring in the rest."
        )
    )
    assert "invalid" in row._detail_text or "error" in row._detail_text
    place.write_bytes(b"PK\x03\x04")
    page.files.bring_in(place)
    assert "No chats were found in" in page.notice.text()


def test_nothing_is_saved_or_brought_in_when_the_person_leaves_the_dialog(
    page: ChatView, stage: MonitorStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(page._chat, stage.client, "Why sour?", "Acids.")
    for name in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *_: ("", ""))
    page.files.ask_to_save(page._chat.chats[0].chat_id)
    page.files.ask_to_bring_in()
    assert page.notice.text() == ""
    assert len(page._chat.chats) == 1
