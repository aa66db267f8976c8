"""The person's words in a bubble."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout

from app.state.chat_values import Message
from app.text.view_words import DialogWords
from app.text.words import ChatWords
from app.theme.palette import Palette
from app.views.message_view import MessageView
from app.views.pieces import button, remove
from app.views.plain_text import FoldedText

MAX_BUBBLE_WIDTH = 528


class QuestionView(MessageView):
    """One question; a long one is folded, and one that got no answer can be asked again."""

    def __init__(self, message: Message, palette: Palette) -> None:
        super().__init__(message, palette)
        self.retry_button: QPushButton | None = None
        """There while the question can be asked again."""
        bubble = QFrame()
        bubble.setProperty("look", "own")
        self.text_view = FoldedText(ChatWords.QUESTION, MAX_BUBBLE_WIDTH)
        self.text_view.unfolded.connect(self.unfolded)
        inside = QVBoxLayout(bubble)
        inside.setContentsMargins(16, 10, 16, 10)
        inside.addWidget(self.text_view)
        # A question stands nearer to its answer than to the answer before.
        self._column.setContentsMargins(0, 10, 0, 0)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._actions, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(bubble, 0)
        self._column.addLayout(row)
        copy = self._actions.add("copy", ChatWords.COPY)
        copy.clicked.connect(self._on_copy_clicked)
        edit = self._actions.add("edit", ChatWords.EDIT)
        edit.clicked.connect(lambda: self.edit_wanted.emit(self._message.message_id))
        self.show_message(message)

    @property
    def is_drawn(self) -> bool:
        """Whether nothing is left to be drawn later."""
        return self.text_view.body.is_drawn

    def show_message(self, message: Message) -> None:
        """Show the question as it is now."""
        super().show_message(message)
        self.text_view.show_text(message.text)
        self._actions.show_variants(message.variant_index, message.num_variants)

    def show_offer(self, *, is_last: bool, can_ask: bool, can_continue: bool) -> None:
        """Offer to ask again what got no answer."""
        if not is_last:
            if self.retry_button is not None:
                remove(self._column, self.retry_button)
                self.retry_button = None
            return
        if self.retry_button is None:
            self.retry_button = button(DialogWords.RETRY)
            self.retry_button.clicked.connect(self.regenerate_wanted)
            self._column.addWidget(self.retry_button, 0, Qt.AlignmentFlag.AlignRight)
        self.retry_button.setEnabled(can_ask)
