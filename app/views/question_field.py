"""A field for a question; a long text is kept beside it, where it costs nothing to draw."""

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.state.text_file import TextFileError, as_part_of_question, read_text_file
from app.text import chat_phrases
from app.text.view_words import DialogWords
from app.text.words import ChatWords
from app.views.pieces import button, label

MAX_EDITED_CHARACTERS = 20_000
"""A longer text would be felt at each key."""
MAX_QUESTION_CHARACTERS = 1_000_000
_JOINT = "\n\n"


class QuestionEdit(QPlainTextEdit):
    """The part of a question that is edited; a paste may be handed on."""

    sent = Signal()
    pasted = Signal(str)
    """A text that is too long to be edited."""

    def __init__(self, *, is_enter_sending: bool) -> None:
        super().__init__()
        self._is_enter_sending = is_enter_sending
        self.setAccessibleName(ChatWords.QUESTION)
        self.setTabChangesFocus(True)
        self.setAcceptDrops(False)

    def num_characters(self) -> int:
        """Return how long the text is, without making a copy of it."""
        return max(0, self.document().characterCount() - 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Send on Enter where that is wanted; everything else is Qt's."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        is_plain = not event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if self._is_enter_sending and is_enter and is_plain:
            self.sent.emit()
            return
        super().keyPressEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Take what is pasted, if it is short enough to be edited."""
        text = source.text()
        if self.num_characters() + len(text) > MAX_EDITED_CHARACTERS:
            self.pasted.emit(text)
        else:
            super().insertFromMimeData(source)


class QuestionField(QWidget):
    """What is typed, and below it a long text that goes with it."""

    sent = Signal()
    changed = Signal()

    def __init__(self, *, is_enter_sending: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.edit = QuestionEdit(is_enter_sending=is_enter_sending)
        self.edit.sent.connect(self.sent)
        self.edit.pasted.connect(self._on_pasted)
        self.edit.textChanged.connect(self._on_text_changed)
        self._kept = ""
        self._chip = QFrame()
        self._chip.setProperty("look", "own")
        self._chip_text = label("", "dim", is_wrapping=True)
        self.take_out_button = button(DialogWords.TAKE_OUT, "quiet")
        self.take_out_button.clicked.connect(lambda: self._keep(""))
        inside = QHBoxLayout(self._chip)
        inside.setContentsMargins(12, 4, 8, 4)
        inside.addWidget(self._chip_text, 1)
        inside.addWidget(self.take_out_button)
        self._refusal = label("", "problem", is_wrapping=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self.edit, 1)
        layout.addWidget(self._chip)
        layout.addWidget(self._refusal)
        self._chip.hide()
        self._refusal.hide()

    def text(self) -> str:
        """Return the whole question."""
        typed = self.edit.toPlainText()
        if not self._kept:
            return typed
        return f"{typed}{_JOINT}{self._kept}" if typed.strip() else self._kept

    def is_empty(self) -> bool:
        """Whether there is nothing to ask."""
        return not self._kept and not self.edit.toPlainText().strip()

    def kept_text(self) -> str:
        """Return the long text that is not edited; mostly empty."""
        return self._kept

    def refusal(self) -> str:
        """Return why something was not taken; empty if nothing was refused."""
        return "" if self._refusal.isHidden() else self._refusal.text()

    def show_text(self, text: str) -> None:
        """Show another question with the cursor at its end."""
        if text == self.text():
            return
        typed, kept = text, ""
        if len(text) > MAX_EDITED_CHARACTERS:
            head, joint, rest = text.partition(_JOINT)
            is_parted = bool(joint and head.strip()) and len(head) <= MAX_EDITED_CHARACTERS
            typed, kept = (head, rest) if is_parted else ("", text)
        self._kept = kept
        self.edit.setPlainText(typed)
        cursor = self.edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self.edit.setTextCursor(cursor)
        self._show_chip()

    def attach(self, path: Path) -> None:
        """Have a text file go with the question, or say why it cannot."""
        try:
            file = read_text_file(path)
        except TextFileError as error:
            self._refuse(chat_phrases.not_attached(path.name, error))
        else:
            self._on_pasted(as_part_of_question(file))

    def _refuse(self, text: str) -> None:
        self._refusal.setText(text)
        self._refusal.show()

    def _keep(self, text: str) -> None:
        self._kept = text
        self._show_chip()
        self._on_text_changed()

    def _show_chip(self) -> None:
        self._chip.setVisible(bool(self._kept))
        self._chip_text.setText(chat_phrases.pasted(self._kept) if self._kept else "")

    def _on_pasted(self, text: str) -> None:
        """Keep a long text beside the field, if a question can be so long."""
        num_characters = self.edit.num_characters() + len(self._kept) + len(text)
        if num_characters > MAX_QUESTION_CHARACTERS:
            self._refuse(chat_phrases.question_too_long(num_characters, MAX_QUESTION_CHARACTERS))
            return
        self._keep(_JOINT.join(part for part in (self._kept, text) if part))

    def _on_text_changed(self) -> None:
        self._refusal.hide()
        self.changed.emit()
