"""The button and the dialog of presets, and the list of chats with folders."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QInputDialog, QListWidget
from pytestqt.qtbot import QtBot

from app.state.chat_values import ChatHeading
from app.state.settings_file import Preset
from app.text.preset_words import PresetWords
from app.theme.palette import LIGHT
from app.views.chat_list import ChatList
from app.views.chat_view import ChatView
from app.views.preset_dialog import PresetDialog
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.messages import StartGeneration
from tests.support.menus import act
from tests.support.monitor_stage import MonitorStage

CHATS = [
    ChatHeading(1, "Pinned", 9.0, is_pinned=True, folder="Work"),
    ChatHeading(2, "Trains", 8.0),
    ChatHeading(3, "Report", 7.0, folder="Work"),
    ChatHeading(4, "Bread", 6.0, folder="kitchen"),
]


@pytest.fixture
def chats(qtbot: QtBot) -> ChatList:
    view = ChatList(LIGHT)
    qtbot.addWidget(view)
    view.show_chats(CHATS, 3, is_searching=False)
    return view


def titles(view: ChatList) -> list[str]:
    rows = view.findChildren(QListWidget)[0]
    return [rows.item(row).text().strip() for row in range(rows.count())]


def test_list_shows_pinned_chats_then_folders_by_name_then_the_rest(chats: ChatList) -> None:
    assert titles(chats) == ["Pinned", "▾  kitchen", "Bread", "▾  Work", "Report", "Trains"]
    rows = chats.findChildren(QListWidget)[0]
    assert rows.currentItem().text().strip() == "Report"
    spoken = rows.item(1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Folder kitchen, 1 chat, open"


def test_folder_is_closed_and_opened_by_click_and_by_keys(chats: ChatList) -> None:
    rows = chats.findChildren(QListWidget)[0]
    chats.show()
    place = rows.visualItemRect(rows.item(1)).center()
    QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert titles(chats) == ["Pinned", "▸  kitchen", "▾  Work", "Report", "Trains"]
    assert rows.currentRow() == 1
    QTest.keyClick(rows, Qt.Key.Key_Left)
    assert "Bread" not in titles(chats)
    QTest.keyClick(rows, Qt.Key.Key_Right)
    assert "Bread" in titles(chats)
    QTest.keyClick(rows, Qt.Key.Key_Return)
    assert "Bread" not in titles(chats)
    chats.show_chats(CHATS, None, is_searching=True)
    assert "Bread" in titles(chats)
    place = rows.visualItemRect(rows.item(3)).center()
    QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
    chats.show_chats(CHATS, None, is_searching=False)
    assert "Report" in titles(chats), "a click while all are open closes none for later"


def test_click_on_a_chat_in_a_folder_opens_it(chats: ChatList, qtbot: QtBot) -> None:
    rows = chats.findChildren(QListWidget)[0]
    chats.show()
    place = rows.visualItemRect(rows.item(2)).center()
    with qtbot.waitSignal(chats.chosen) as chosen:
        QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert chosen.args == [4]


def test_menu_moves_a_chat(chats: ChatList, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    with qtbot.waitSignal(chats.move_wanted) as moved:
        act(chats.menu_of(5), "Move to a folder", "kitchen")
    assert moved.args == [2, "kitchen"]
    with qtbot.waitSignal(chats.move_wanted) as moved:
        act(chats.menu_of(4), "Move to a folder", "No folder")
    assert moved.args == [3, ""]
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: (" Travel ", True))
    with qtbot.waitSignal(chats.move_wanted) as moved:
        act(chats.menu_of(5), "Move to a folder", "New folder…")
    assert moved.args == [2, "Travel"]
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: ("Travel", False))
    with qtbot.assertNotEmitted(chats.move_wanted):
        act(chats.menu_of(5), "Move to a folder", "New folder…")


def test_menu_of_a_folder_renames_and_takes_it_away(
    chats: ChatList, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: (" Food ", True))
    with qtbot.waitSignal(chats.folder_renamed) as renamed:
        act(chats.menu_of(1), "Rename the folder…")
    assert renamed.args == ["kitchen", "Food"]
    with qtbot.waitSignal(chats.folder_renamed) as renamed:
        act(chats.menu_of(1), "Take the folder away (its chats stay)")
    assert renamed.args == ["kitchen", ""]
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: ("", True))
    with qtbot.assertNotEmitted(chats.folder_renamed):
        act(chats.menu_of(1), "Rename the folder…")


def test_preset_is_written_chosen_and_given_to_the_model(
    page: ChatView, stage: MonitorStage, qtbot: QtBot
) -> None:
    chosen = page.composer.preset_button
    assert chosen.text() == "Preset ▾"
    dialog = PresetDialog(page._chat.presets, page)
    qtbot.addWidget(dialog)
    assert not dialog.form.isEnabled()
    dialog.buttons[PresetWords.NEW].click()
    dialog.name.setText("Terse & dry")
    dialog.name.editingFinished.emit()
    dialog.instructions.setPlainText("Be brief.")
    assert not dialog.sampling.decimals["temperature"].isEnabled()
    dialog.own.setChecked(True)
    dialog.sampling.decimals["temperature"].setValue(0.2)
    dialog.sampling.wholes["max_tokens"].setValue(99)
    sampling = SamplingSettings(temperature=0.2, max_tokens=99)
    kept = Preset(name="Terse & dry", system_prompt="Be brief.", sampling=sampling)
    assert page._chat.presets.presets == [kept]
    act(chosen.menu(), "Terse && dry")
    assert chosen.text() == "Terse && dry ▾"
    assert chosen.accessibleName() == "Preset: Terse & dry"
    page.composer.show_draft("one")
    page.composer.sent.emit("one")
    command = stage.client.last(StartGeneration)
    assert (command.conversation[0].text, command.sampling) == ("Be brief.", sampling)
    loaded = stage.monitor.session.loaded
    assert loaded is not None
    act(chosen.menu(), f"Always with {loaded.name}")
    assert page._chat.presets.of_model(loaded.folder) == "Terse & dry"
    act(chosen.menu(), f"Always with {loaded.name}")
    assert page._chat.presets.of_model(loaded.folder) == ""
    act(chosen.menu(), "As in the settings")
    assert chosen.text() == "Preset ▾"


def test_dialog_tells_a_taken_name_and_shows_what_is_chosen(page: ChatView, qtbot: QtBot) -> None:
    presets = page._chat.presets
    presets.add(Preset(name="a", system_prompt="A"))
    presets.add(Preset(name="b", system_prompt="B", sampling=SamplingSettings(top_k=7)))
    dialog = PresetDialog(presets, page)
    qtbot.addWidget(dialog)
    assert dialog.instructions.toPlainText() == "A"
    dialog.name.setText("b")
    dialog.name.editingFinished.emit()
    assert dialog.problem.text() == PresetWords.NAME_TAKEN
    dialog.list.setCurrentRow(1)
    assert dialog.problem.text() == ""
    assert dialog.instructions.toPlainText() == "B"
    assert dialog.sampling.wholes["top_k"].value() == 7
    dialog.buttons[PresetWords.DELETE].click()
    assert dialog.instructions.toPlainText() == "A"
    dialog.buttons[PresetWords.DELETE].click()
    assert presets.presets == []
    assert not dialog.buttons[PresetWords.EXPORT].isEnabled()


def test_preset_saved_as_a_file_is_brought_in_again(
    page: ChatView, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    presets = page._chat.presets
    presets.add(Preset(name="a", system_prompt="A"))
    dialog = PresetDialog(presets, page)
    qtbot.addWidget(dialog)
    place = tmp_path / "a.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(place), ""))
    dialog.buttons[PresetWords.IMPORT].click()
    assert "No preset was found in" in dialog.problem.text()
    dialog.buttons[PresetWords.EXPORT].click()
    dialog.buttons[PresetWords.IMPORT].click()
    assert [each.name for each in presets.presets] == ["a", "a 2"]
    assert dialog.name.text() == "a 2"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path), ""))
    dialog.buttons[PresetWords.EXPORT].click()
    assert "could not be written" in dialog.problem.text()
    for name in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *_: ("", ""))
    dialog.buttons[PresetWords.EXPORT].click()
    dialog.buttons[PresetWords.IMPORT].click()
    assert len(presets.presets) == 2


def test_presets_are_opened_from_the_menu(page: ChatView, qtbot: QtBot) -> None:
    act(page.composer.preset_button.menu(), "Presets…")
    (dialog,) = page.findChildren(PresetDialog)
    assert dialog.isVisible()
    dialog.accept()
