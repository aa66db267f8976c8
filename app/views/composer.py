"""Where a question is written and sent, and an answer stopped."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.text import phrases
from app.text.words import ChatWords
from app.theme import metrics
from app.views.pieces import button, label
from app.views.question_field import QuestionField


class Composer(QWidget):
    """The question field with its button and the context meter."""

    sent = Signal(str)
    stopped = Signal()
    changed = Signal(str)
    """The draft as it is now."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMaximumWidth(metrics.TEXT_COLUMN_WIDTH)
        self.field = QuestionField(is_enter_sending=True)
        self.edit = self.field.edit
        self.edit.setProperty("look", "composer")
        self.edit.setFixedHeight(76)
        self.field.sent.connect(self._send)
        self.field.changed.connect(self._on_changed)
        self._meter = label("", "dim")
        self.send_button = button(ChatWords.SEND, "primary")
        self.send_button.clicked.connect(self._send)
        self.stop_button = button(ChatWords.STOP)
        self.stop_button.clicked.connect(self.stopped)
        below = QHBoxLayout()
        below.addWidget(self._meter, 1)
        below.addWidget(self.stop_button)
        below.addWidget(self.send_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(10)
        layout.addWidget(self.field)
        layout.addLayout(below)
        self._can_ask = False
        self.show_state(can_ask=False, is_answering=False, hint=ChatWords.ASK_UNLOADED)

    def show_state(self, *, can_ask: bool, is_answering: bool, hint: str) -> None:
        """Show what can be done now."""
        self._can_ask = can_ask
        self.edit.setPlaceholderText(hint)
        had_focus = self.stop_button.hasFocus() or self.send_button.hasFocus()
        self.stop_button.setVisible(is_answering)
        self.send_button.setVisible(not is_answering)
        if had_focus:
            self.edit.setFocus()
        self._show_send()

    def show_draft(self, text: str) -> None:
        """Show the draft of another chat."""
        self.field.show_text(text)

    def show_context(self, used_tokens: int, context_tokens: int) -> None:
        """Show how full the context is."""
        text = phrases.context_line(used_tokens, context_tokens) if context_tokens else ""
        self._meter.setText(text)

    def _show_send(self) -> None:
        self.send_button.setEnabled(self._can_ask and not self.field.is_empty())

    def _on_changed(self) -> None:
        self._show_send()
        self.changed.emit(self.field.text())

    def _send(self) -> None:
        text = self.field.text().strip()
        if text and self._can_ask:
            self.sent.emit(text)
