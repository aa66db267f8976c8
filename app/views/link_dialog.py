"""A link of an answer leaves the program only when a person says so."""

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from app.text.view_words import LinkWords


def ask_to_open(parent: QWidget, address: str) -> None:
    """Open an address of the web or of a mailbox if the person agrees; nothing else is opened."""
    url = QUrl(address)
    if url.scheme() not in ("http", "https", "mailto"):
        return
    box = QMessageBox(parent)
    box.setText(LinkWords.TITLE)
    box.setInformativeText(address)
    box.setTextFormat(Qt.TextFormat.PlainText)
    go = box.addButton(LinkWords.OPEN, QMessageBox.ButtonRole.AcceptRole)
    box.addButton(LinkWords.KEEP, QMessageBox.ButtonRole.RejectRole)
    box.exec()
    if box.clickedButton() is go:
        QDesktopServices.openUrl(url)
