"""A dialog for text of several lines."""

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.text.words import ChatWords, ShellWords


def ask_text(parent: QWidget, title: str, text: str) -> str | None:
    """Return the changed text, or None if the person left it."""
    dialog = QDialog(parent)
    dialog.setWindowTitle(title)
    dialog.resize(560, 240)
    edit = QPlainTextEdit(text)
    edit.setAccessibleName(title)
    buttons = QDialogButtonBox()
    buttons.addButton(ChatWords.SEND, QDialogButtonBox.ButtonRole.AcceptRole)
    buttons.addButton(ShellWords.CANCEL, QDialogButtonBox.ButtonRole.RejectRole)
    buttons.accepted.connect(dialog.accept)
    buttons.rejected.connect(dialog.reject)
    layout = QVBoxLayout(dialog)
    layout.addWidget(edit)
    layout.addWidget(buttons)
    is_accepted = dialog.exec() == QDialog.DialogCode.Accepted
    result = edit.toPlainText().strip() if is_accepted else None
    dialog.deleteLater()
    return result
