"""Having something said by a screen reader, without moving the focus."""

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent


def announce(source: QObject, text: str) -> None:
    """Say a text once what is being said now has ended; nothing happens where nobody listens."""
    if text:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(source, text))
