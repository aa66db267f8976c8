"""What is dropped on the window is taken, or refused in words."""

from pathlib import Path

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QDragLeaveEvent
from PySide6.QtWidgets import QApplication

from app.text.words import ShellWords
from app.views.drop_zone import dropped_path
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow


def test_two_folders_dropped_are_refused_in_words(
    start_window: StartWindow, tmp_path: Path
) -> None:
    window = start_window(is_loading=False)
    program = window.program
    window.drop(tmp_path / "one", tmp_path / "two")
    assert program.window.notice.text() == ShellWords.DROP_ONLY_FOLDERS
    assert program.session.candidate is None
    assert program.window.current_page() is Page.CHAT
    (tmp_path / "one").mkdir()
    window.drop(tmp_path / "one")
    assert program.window.notice.text() == ""
    assert program.session.candidate is not None


def test_dragged_folder_is_welcomed_in_words(start_window: StartWindow, tmp_path: Path) -> None:
    window = start_window(is_loading=False)
    hint = window.program._drop.hint
    assert hint.isHidden()
    window.drag(tmp_path)
    assert hint.isVisible()
    assert hint.text() == ShellWords.DROP_HERE
    QApplication.sendEvent(window.program.window, QDragLeaveEvent())
    assert hint.isHidden()
    window.drag(tmp_path, tmp_path)
    assert hint.text() == ShellWords.DROP_ONLY_FOLDERS
    window.drop(tmp_path)
    assert hint.isHidden()


def test_dragged_text_is_no_path() -> None:
    data = QMimeData()
    data.setText("text")
    assert dropped_path(data) == ""
