"""A link of an answer leaves the program only when a person says so."""

from PySide6.QtCore import Qt, QUrl, QUrlQuery
from PySide6.QtGui import QDesktopServices, QTextOption
from PySide6.QtWidgets import QDialogButtonBox, QGridLayout, QMessageBox, QPlainTextEdit, QWidget

from app.text.view_words import LinkWords

_NUM_COLUMNS = 48
_MAX_LINES = 8
"""Longer addresses are scrolled; none is cut."""
_FILES = frozenset({"attach", "attachment"})
"""With these some mail programs take files of the PC along."""


def ask_to_open(parent: QWidget, address: str) -> None:
    """Open an address of the web or of a mailbox if the person agrees; nothing else is opened.

    It is shown as it travels, in ASCII: letters that look like others or turn the direction of the
    text have no effect.
    """
    url = QUrl(address)
    if url.scheme() not in ("http", "https", "mailto") or _takes_files(url):
        return
    box = QMessageBox(parent)
    # A dialog of the system's own would leave out what is put into it.
    box.setOption(QMessageBox.Option.DontUseNativeDialog, True)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(LinkWords.TITLE)
    go = box.addButton(LinkWords.OPEN, QMessageBox.ButtonRole.AcceptRole)
    box.addButton(LinkWords.KEEP, QMessageBox.ButtonRole.RejectRole)
    _show_under_title(box, url.toString(QUrl.ComponentFormattingOption.FullyEncoded))
    box.exec()
    if box.clickedButton() is go:
        QDesktopServices.openUrl(url)


def _takes_files(url: QUrl) -> bool:
    keys = (key.lower() for key, _ in QUrlQuery(url).queryItems())
    return url.scheme() == "mailto" and not _FILES.isdisjoint(keys)


def _show_under_title(box: QMessageBox, address: str) -> None:
    """Put the whole address between the words and the buttons, parted at any letter."""
    view = QPlainTextEdit(address, box)
    view.setReadOnly(True)
    view.setAccessibleName(LinkWords.TITLE)
    view.setTabChangesFocus(True)
    view.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
    letters = view.fontMetrics()
    frame = 2 * (view.frameWidth() + round(view.document().documentMargin()))
    num_lines = min(_MAX_LINES, 2 + len(address) // _NUM_COLUMNS)
    view.setFixedSize(
        letters.horizontalAdvance("m") * _NUM_COLUMNS + frame,
        letters.lineSpacing() * num_lines + frame,
    )
    layout, buttons = box.layout(), box.findChild(QDialogButtonBox)
    assert isinstance(layout, QGridLayout)
    assert isinstance(buttons, QDialogButtonBox)
    row, num_columns = layout.rowCount(), layout.columnCount()
    layout.addWidget(view, row, 0, 1, num_columns)
    layout.removeWidget(buttons)
    layout.addWidget(buttons, row + 1, 0, 1, num_columns)
