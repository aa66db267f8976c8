"""An answer with its thinking and with what it took."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QToolButton

from app.formulas.desk import FormulaDesk
from app.state.chat_values import AnswerEnd, Message
from app.text import phrases
from app.text.errors import reason_text
from app.text.view_words import DialogWords
from app.text.words import ChatWords
from app.theme.palette import Palette
from app.views.markdown_view import MarkdownView
from app.views.message_view import MessageView
from app.views.pieces import ToolButton, button, label, remove
from app.views.plain_text import LongText
from runtime.protocol.chat import GenerationStats
from runtime.protocol.comparison import notes_of

_WITHOUT_ANSWER = {
    AnswerEnd.FINISHED: ChatWords.NO_ANSWER,
    AnswerEnd.LENGTH: ChatWords.NO_ROOM_TO_ANSWER,
}
"""What is said of an answer without words, by its end; others say enough themselves."""


class AnswerView(MessageView):
    """One answer, growing while it is written.

    ``note`` says what has to be added to the line under an answer, if anything.
    """

    def __init__(
        self,
        message: Message,
        palette: Palette,
        note: Callable[[GenerationStats], str],
        formulas: FormulaDesk | None = None,
    ) -> None:
        super().__init__(message, palette)
        self._formulas = formulas
        self._note = note
        self._shown_answer = ""
        self._fold: QToolButton | None = None
        self._thinking: LongText | None = None
        self._body = self._make_body()
        self._column.addWidget(self._body)
        self._without_answer = label("", is_wrapping=True)
        self._without_answer.hide()
        self._column.addWidget(self._without_answer)
        self._line = label("", "dim", is_wrapping=True)
        below = QHBoxLayout()
        below.setSpacing(8)
        below.addWidget(self._line, 1)
        below.addWidget(self._actions, 0, Qt.AlignmentFlag.AlignTop)
        self._column.addLayout(below)
        self.continue_button: QPushButton | None = None
        """There while the answer can go on."""
        again = self._actions.add("regenerate", ChatWords.REGENERATE)
        again.clicked.connect(self.regenerate_wanted)
        copy = self._actions.add("copy", ChatWords.COPY)
        copy.clicked.connect(self._on_copy_clicked)
        self._actions.hide()
        self.show_message(message)

    @property
    def body(self) -> MarkdownView:
        """The answer without its thinking."""
        return self._body

    @property
    def is_drawn(self) -> bool:
        """Whether nothing is left to be drawn later."""
        return self._body.is_drawn and (self._thinking is None or self._thinking.is_drawn)

    def show_message(self, message: Message) -> None:
        """Show the answer as it is now; one that grew is continued, not drawn anew."""
        is_reopened = message.end is AnswerEnd.GROWING is not self._message.end
        super().show_message(message)
        if is_reopened:
            self._renew_body()
            self._line.setText("")
            self._without_answer.hide()
            self._actions.hide()
        self._show_thinking()
        self._show_answer_text(message.text)
        if message.end is not AnswerEnd.GROWING:
            self._show_end()

    def show_offer(self, *, is_last: bool, can_ask: bool, can_continue: bool) -> None:
        """Offer to let the last answer go on."""
        if not (is_last and can_continue):
            if self.continue_button is not None:
                remove(self._column, self.continue_button)
                self.continue_button = None
        elif self.continue_button is None:
            self.continue_button = button(ChatWords.CONTINUE)
            self.continue_button.setToolTip(ChatWords.CONTINUE_EXPLAINED)
            self.continue_button.clicked.connect(self.continue_wanted)
            self._column.addWidget(self.continue_button, 0, Qt.AlignmentFlag.AlignLeft)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        super().show_palette(palette)
        self._body.show_palette(palette)

    def _make_body(self) -> MarkdownView:
        body = MarkdownView(self._palette, self._formulas)
        body.link_clicked.connect(self.link_clicked)
        body.drew.connect(self.drew)
        return body

    def _show_thinking(self) -> None:
        thought = self._message.thinking
        if self._fold is None:
            if not thought:
                return
            self._fold = self._make_fold()
        self._fold.setVisible(bool(thought))
        self._fold.setText(self._fold_name())
        if self._thinking is not None and self._fold.isChecked():
            self._thinking.show_text(thought)

    def _fold_name(self) -> str:
        """Return what the fold of the thinking says."""
        message = self._message
        if not message.text and message.end is AnswerEnd.GROWING:
            return ChatWords.THINKING
        if not message.text and message.end is not AnswerEnd.FINISHED:
            return ChatWords.STOPPED_THINKING
        if message.stats is None or not message.stats.thinking_s:
            return ChatWords.THOUGHT
        return phrases.thought_for(message.stats.thinking_s)

    def _make_fold(self) -> QToolButton:
        fold = ToolButton()
        fold.setCheckable(True)
        fold.setAccessibleName(DialogWords.SHOW_THINKING)
        fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        fold.setArrowType(Qt.ArrowType.RightArrow)
        fold.toggled.connect(self._on_fold_toggled)
        self._column.insertWidget(0, fold)
        return fold

    def _renew_body(self) -> None:
        """Begin the text anew."""
        index = self._column.indexOf(self._body)
        remove(self._column, self._body)
        self._body = self._make_body()
        self._column.insertWidget(index, self._body)
        self._shown_answer = ""

    def _show_answer_text(self, answer: str) -> None:
        if not answer.startswith(self._shown_answer):
            self._renew_body()
        new = answer[len(self._shown_answer) :]
        if new:
            self._body.append(new)
        self._shown_answer = answer
        self._body.setVisible(bool(answer))

    def _show_end(self) -> None:
        message = self._message
        self._body.finish()
        ends = {
            AnswerEnd.LENGTH: ChatWords.LENGTH,
            AnswerEnd.CONTEXT_FULL: ChatWords.CONTEXT_FULL,
            AnswerEnd.STOPPED: ChatWords.STOPPED,
            AnswerEnd.CUT_OFF: ChatWords.CUT_OFF,
        }
        parts = [ends.get(message.end, "")]
        if message.stats is not None:
            parts += [phrases.stats_line(message.stats), self._note(message.stats)]
            parts += [reason_text(note) for note in notes_of(message.stats)]
            self._line.setToolTip(phrases.stats_tooltip(message.stats))
        self._line.setText(phrases.DOT.join(part for part in parts if part))
        missing = "" if message.text.strip() else _WITHOUT_ANSWER.get(message.end, "")
        self._without_answer.setText(missing)
        self._without_answer.setVisible(bool(missing))
        self._actions.show()
        self._actions.show_variants(message.variant_index, message.num_variants)

    def _on_fold_toggled(self, is_open: bool) -> None:
        if self._fold is not None:
            arrow = Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow
            self._fold.setArrowType(arrow)
        if self._thinking is None:
            self._thinking = LongText("thought", ChatWords.THOUGHT)
            self._thinking.setContentsMargins(0, 0, 0, 8)
            self._column.insertWidget(1, self._thinking)
        if is_open:
            self.unfolded.emit()
            self._thinking.show_text(self._message.thinking)
        self._thinking.setVisible(is_open)
