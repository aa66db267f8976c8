"""Notices of several sources stand beside each other, and go when what they say is over."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.main import Program
from app.state import idle_unload
from app.state.chat_backup import ChatBackup
from app.state.chat_store import ChatStore
from app.state.chat_values import AnswerEnd, ChatNotice
from app.state.folders import app_folders
from app.state.settings import SettingNotice, SettingProblem
from app.state.stages import Stage
from app.text.words import ChatWords, ShellWords
from app.views.notice_bar import NoticeSource
from app.views.rail import Page
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from tests.gui.main.conftest import StartWindow
from tests.gui.text.test_units import plain
from tests.support.chat_talks import add_talk
from tests.support.unnarrowed import now
from tests.support.window import START_MS, WindowDriver


def kill_runtime(window: WindowDriver) -> None:
    """End the runtime as a crash would."""
    for child in psutil.Process().children():
        child.kill()
    window.wait_for_stage(Stage.FAILED)


def restart_buttons(program: Program) -> list[QPushButton]:
    """The buttons that are seen and start the engine again; Qt shows a new one an event later."""
    return [
        button
        for button in program.window.notice.findChildren(QPushButton)
        if button.text() == ShellWords.RESTART and button.isVisible()
    ]


def test_later_notices_leave_the_death_of_the_engine_and_its_button(
    start_window: StartWindow,
) -> None:
    window = start_window(["one"])
    program = window.program
    kill_runtime(window)
    cause = program.window.notice.text()
    assert cause
    program.settings.noticed.emit(SettingNotice(SettingProblem.NOT_SAVED, "file", "full"))
    program.chat.noticed.emit(ChatNotice.NOT_SAVED, "disk full")
    program.chat.noticed.emit(ChatNotice.SAVED_AGAIN, "")
    assert cause in program.window.notice.text()
    assert "saved again" in program.window.notice.text()
    assert "cannot be saved" not in program.window.notice.text()
    window.qtbot.waitUntil(lambda: bool(restart_buttons(program)))
    (restart,) = restart_buttons(program)
    QTest.mouseClick(restart, Qt.MouseButton.LeftButton)
    window.wait_for_stage(Stage.READY)
    assert cause not in program.window.notice.text()


def test_folders_in_place_of_files_are_all_told(qtbot: QtBot, start_window: StartWindow) -> None:
    folders = app_folders(os.environ)
    for path in (folders.settings_file, folders.chats_file, folders.library_file):
        path.mkdir(parents=True)
    program = start_window(["one"]).program
    qtbot.waitUntil(lambda: "Chats cannot be saved" in program.window.notice.text())
    assert "could not be read" in program.window.notice.text()


def test_damaged_settings_and_chats_are_both_told(qtbot: QtBot, start_window: StartWindow) -> None:
    folders = app_folders(os.environ)
    for path in (folders.settings_file, folders.chats_file):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"not at all what it should be" * 100)
    program = start_window(["one"]).program
    qtbot.waitUntil(lambda: "chats was damaged" in program.window.notice.text())
    assert "could not be understood" in program.window.notice.text()


def test_damaged_chats_come_back_from_the_copy_that_the_last_end_made(
    qtbot: QtBot, start_window: StartWindow
) -> None:
    chats_file = app_folders(os.environ).chats_file
    store = ChatStore(chats_file)
    add_talk(store, "Where is the flour?")
    store.close()
    ChatBackup(chats_file).close()
    chats_file.write_bytes(b"not at all what it should be" * 100)
    program = start_window(["one"]).program
    qtbot.waitUntil(lambda: "back as they were" in program.window.notice.text())
    assert [chat.title for chat in program.chat.chats] == ["Where is the flour?"]


def test_restart_by_the_session_takes_the_notice_away_at_once(start_window: StartWindow) -> None:
    window = start_window(["one"])
    kill_runtime(window)
    assert window.program.window.notice.text()
    window.program.session.restart_runtime()
    assert window.program.session.stage is not Stage.READY
    assert window.program.window.notice.text() == ""
    window.wait_for_stage(Stage.READY)


def test_folder_dropped_on_a_dead_engine_takes_the_notice_away(
    qtbot: QtBot, start_window: StartWindow, tmp_path: Path
) -> None:
    window = start_window(["one"])
    kill_runtime(window)
    (tmp_path / "dropped").mkdir()
    window.drop(tmp_path / "dropped")
    assert window.program.window.notice.text() == ""
    session = window.program.session
    qtbot.waitUntil(
        lambda: session.candidate is not None and bool(session.candidate.plans), timeout=START_MS
    )


def test_model_that_rested_is_unloaded_told_and_loaded_again_by_a_click(
    qtbot: QtBot, start_window: StartWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_unload, "MS_PER_MINUTE", 100)
    window = start_window(["one"])
    program = window.program
    program.settings.change(unload_after_min=1)
    qtbot.waitUntil(lambda: "gave its memory back" in program.window.notice.text())
    qtbot.waitUntil(lambda: program.session.stage in (Stage.IDLE, Stage.PLANNED), timeout=START_MS)
    assert now(program.session.loaded) is None
    program.settings.change(unload_after_min=0)
    window.click(program.window.notice, ShellWords.LOAD_AGAIN)
    window.wait_for_stage(Stage.READY)
    assert "gave its memory back" not in program.window.notice.text()


def fail(window: WindowDriver, code: ErrorCode, detail: str = "", **parameters: str | int) -> None:
    """Have the session or, for a request, the chat tell an error."""
    program = window.program
    error = ErrorReport(
        code=code, severity=Severity.MODEL, parameters={**parameters}, detail=detail
    )
    program.session.failed.emit(error)


def buttons(widget: QWidget) -> dict[str, QPushButton]:
    return {each.text(): each for each in widget.findChildren(QPushButton) if each.isVisible()}


def test_error_has_headline_cause_with_numbers_step_and_details_to_copy(
    start_window: StartWindow, qtbot: QtBot
) -> None:
    window = start_window(["one"])
    main = window.program.window
    fail(window, ErrorCode.RAM_NOT_FREE, "a trace", free_bytes=3 << 30, needed_bytes=9 << 30)
    row = main.notice.row(NoticeSource.ENGINE)
    assert row is not None
    assert row.headline() == "The model cannot be loaded like this"
    assert "3.0 GiB of RAM now" in plain(row.text())
    assert "9.0 GiB" in plain(row.text())
    assert row.accessibleName().startswith(row.headline())
    qtbot.waitUntil(lambda: len(buttons(row)) == 3)
    buttons(row)[ShellWords.COPY_DETAILS].click()
    copied = QGuiApplication.clipboard().text()
    assert copied.splitlines()[0] == row.headline()
    assert "9.0" in copied
    assert copied.endswith("a trace")
    buttons(row)["See its plans"].click()
    assert main.current_page() is Page.MODELS
    assert main.notice.text() == ""


def test_steps_of_errors_do_what_their_buttons_say(start_window: StartWindow, qtbot: QtBot) -> None:
    window = start_window(["one", "two"])
    program = window.program
    main, session = program.window, program.session

    def take(code: ErrorCode, name: str) -> None:
        fail(window, code)
        row = main.notice.row(NoticeSource.ENGINE)
        assert row is not None
        qtbot.waitUntil(lambda: name in buttons(row))
        buttons(row)[name].click()

    take(ErrorCode.SETTING_INVALID, "Open the settings")
    assert main.current_page() is Page.SETTINGS
    take(ErrorCode.SHARD_MISSING, "Choose another model")
    assert main.current_page() is Page.MODELS
    window.send("?")
    window.wait_for_answer()
    take(ErrorCode.PROMPT_TOO_LONG, "New chat")
    assert main.current_page() is Page.CHAT
    assert program.chat.messages == []
    loaded = now(session.loaded)
    take(ErrorCode.DRIVE_READ_FAILED, "Load it again")
    qtbot.waitUntil(
        lambda: session.loaded is not None and session.loaded is not loaded, timeout=START_MS
    )
    # One that runs is not started again.
    fail(window, ErrorCode.INTERNAL)
    row = main.notice.row(NoticeSource.ENGINE)
    assert row is not None
    assert ShellWords.RESTART not in buttons(row)


def test_error_of_an_answer_offers_its_step_in_the_chat(
    start_window: StartWindow, qtbot: QtBot
) -> None:
    window = start_window(["word " * 2000])
    chat = window.program.chat_view
    window.send("?")
    window.wait_for_text()
    window.program.chat.failed.emit(
        ErrorReport(code=ErrorCode.ENGINE_BUSY, severity=Severity.REQUEST)
    )
    assert chat.notice.text()
    qtbot.waitUntil(lambda: ChatWords.STOP in buttons(chat.notice))
    buttons(chat.notice)[ChatWords.STOP].click()
    assert chat.notice.text() == ""
    window.wait_for_answer()
    assert window.program.chat.messages[-1].end is AnswerEnd.STOPPED
