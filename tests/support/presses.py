"""Buttons pressed by their names, and the list of chats as it reads."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QListWidget, QPushButton, QToolButton, QWidget

from app.views.chat_list import ChatList


def press(inside: QWidget, name: str) -> None:
    """Click the last button inside of a widget that has a name and can be pressed."""
    found = [
        button
        for kind in (QPushButton, QToolButton)
        for button in inside.findChildren(kind)
        if button.accessibleName() == name and button.isEnabled() and not button.isHidden()
    ]
    QTest.mouseClick(found[-1], Qt.MouseButton.LeftButton)


def rows_of(chats: ChatList) -> list[str]:
    """Return the lines of the list of chats."""
    rows = chats.findChildren(QListWidget)[0]
    return [rows.item(row).text().strip() for row in range(rows.count())]
