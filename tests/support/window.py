"""Driving the real window as a person would: start, type, drop, wait, close."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.main import Program, StartOptions
from app.state.stages import Stage

START_MS = 60_000
ANSWER_MS = 90_000


class WindowDriver:
    """One window with its runtime."""

    def __init__(self, qtbot: QtBot, options: StartOptions) -> None:
        self.qtbot = qtbot
        self.program = Program(options, os.environ)
        self.program.show()

    def wait_for_stage(self, stage: Stage, timeout_ms: int = START_MS) -> None:
        """Wait until the window shows a stage."""
        self.qtbot.waitUntil(lambda: self.program.session.stage is stage, timeout=timeout_ms)

    def send(self, text: str) -> None:
        """Type a question, send it with Enter, wait until it is being answered."""
        edit = self.program.chat_view.composer.edit
        QTest.keyClicks(edit, text)
        QTest.keyClick(edit, Qt.Key.Key_Return)
        self.qtbot.waitUntil(lambda: self.program.chat.is_answering, timeout=ANSWER_MS)

    def wait_for_answer(self) -> str:
        """Wait until nothing is being written; return the last message."""
        self.qtbot.waitUntil(lambda: not self.program.chat.is_answering, timeout=ANSWER_MS)
        return self.program.chat.messages[-1].text

    def wait_for_text(self, num_characters: int = 1) -> None:
        """Wait until the answer has some text."""
        self.qtbot.waitUntil(
            lambda: (
                len(self.program.chat.messages[-1].text) >= num_characters
                and self.program.chat.is_answering
            ),
            timeout=ANSWER_MS,
        )

    def kill_runtime(self) -> None:
        """Kill the runtime, as a person with a task manager or the system does."""
        for runtime in self.runtimes():
            runtime.kill()

    def runtimes(self) -> list[psutil.Process]:
        """Return the background processes of the window, of which there is at least one."""
        children = psutil.Process().children()
        found = [child for child in children if "runtime.service" in child.cmdline()]
        assert found
        return found

    def press(
        self,
        key: Qt.Key,
        modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    ) -> None:
        """Press a key in the window, which must be the active one for its shortcuts."""
        self.program.window.activateWindow()
        self.qtbot.waitUntil(self.program.window.isActiveWindow, timeout=START_MS)
        QTest.keyClick(self.program.window, key, modifier)

    def click(self, inside: QWidget, name: str) -> None:
        """Click the button with this name once it is seen; Qt shows a new one an event later."""

        def buttons() -> list[QAbstractButton]:
            return [
                button
                for button in inside.findChildren(QAbstractButton)
                if button.text() == name and button.isVisible() and button.isEnabled()
            ]

        self.qtbot.waitUntil(lambda: len(buttons()) == 1, timeout=START_MS)
        QTest.mouseClick(buttons()[0], Qt.MouseButton.LeftButton)

    def press_on(self, widget: QWidget, key: Qt.Key) -> None:
        """Press a key on a part of the window."""
        widget.setFocus()
        QTest.keyClick(widget, key)

    def drag(self, *paths: Path) -> QMimeData:
        """Drag folders or files over the middle of the window."""
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
        how = (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
        enter = QDragEnterEvent(QPoint(400, 300), Qt.DropAction.CopyAction, data, *how)
        QApplication.sendEvent(self.program.window, enter)
        assert enter.isAccepted()
        return data

    def drop(self, *paths: Path) -> None:
        """Drop folders or files on the middle of the window."""
        data = self.drag(*paths)
        how = (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
        event = QDropEvent(QPointF(400, 300), Qt.DropAction.CopyAction, data, *how)
        QApplication.sendEvent(self.program.window, event)

    def close(self) -> None:
        """Close the window, end the runtime, forget the widgets."""
        self.program.window.close()
        self.program.close()
        self.program.window.deleteLater()
        self.program.deleteLater()
        application = QApplication.instance()
        assert application is not None
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
