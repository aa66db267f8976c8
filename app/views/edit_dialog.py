"""A dialog for text of several lines."""

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from app.text.words import ChatWords, ShellWords
from app.views.question_field import QuestionField


def ask_text(parent: QWidget, title: str, text: str) -> str | None:
    """Return the changed text, or None if the person left it."""
    dialog = QDialog(parent)
    dialog.setWindowTitle(title)
    dialog.resize(560, 240)
    field = QuestionField(is_enter_sending=False)
    field.edit.setAccessibleName(title)
    field.show_text(text)
    buttons = QDialogButtonBox()
    buttons.addButton(ChatWords.SEND, QDialogButtonBox.ButtonRole.AcceptRole)
    buttons.addButton(ShellWords.CANCEL, QDialogButtonBox.ButtonRole.RejectRole)
    buttons.accepted.connect(dialog.accept)
    buttons.rejected.connect(dialog.reject)
    layout = QVBoxLayout(dialog)
    layout.addWidget(field)
    layout.addWidget(buttons)
    is_accepted = dialog.exec() == QDialog.DialogCode.Accepted
    result = field.text().strip() if is_accepted else None
    dialog.deleteLater()
    return result
