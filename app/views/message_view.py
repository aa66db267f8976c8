"""One message: the person's words in a bubble, or an answer with what it took."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from app.state.chat_values import AnswerEnd, Message
from app.state.thinking import split_thinking
from app.text import phrases
from app.text.view_words import DialogWords
from app.text.words import ChatWords
from app.theme.palette import Palette
from app.views.markdown_view import MarkdownView
from app.views.pieces import IconButton, label
from runtime.protocol.chat import GenerationStats, Role

MAX_BUBBLE_WIDTH = 528


class _Actions(QWidget):
    """The buttons of a message; seen while the pointer or the focus is in the message."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._buttons: list[IconButton] = []
        self._is_hovered = False
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)

    def add(self, icon_name: str, name: str) -> IconButton:
        """Add a button and return it."""
        button = IconButton(icon_name, name, self._palette)
        button.installEventFilter(self)
        self._buttons.append(button)
        self._layout.addWidget(button)
        self._reveal()
        return button

    def add_widget(self, widget: QWidget) -> None:
        """Add something that is always seen."""
        self._layout.addWidget(widget)

    def set_hovered(self, is_hovered: bool) -> None:
        """Tell whether the pointer is in the message."""
        self._is_hovered = is_hovered
        self._reveal()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._reveal()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the buttons while one of them has the focus."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self._reveal()
        return False

    def _reveal(self) -> None:
        is_seen = self._is_hovered or any(button.hasFocus() for button in self._buttons)
        for button in self._buttons:
            button.set_revealed(is_seen, self._palette)


class MessageView(QFrame):
    """One message of the open chat, growing while it is written.

    ``note`` says what has to be added to the line under an answer, if anything.
    """

    edit_wanted = Signal(object)
    regenerate_wanted = Signal()
    variant_wanted = Signal(object, int)
    """Message id, and one step forward or back."""
    link_clicked = Signal(str)

    def __init__(
        self,
        message: Message,
        palette: Palette,
        note: Callable[[GenerationStats], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._palette = palette
        self._note = note
        self._message = message
        self._shown_answer = ""
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(6)
        self._actions = _Actions(palette)
        self._body: MarkdownView | None = None
        if message.role is Role.USER:
            self._build_question()
        else:
            self._build_answer()
        self.show_message(message)

    @property
    def message(self) -> Message:
        """What is shown."""
        return self._message

    def show_message(self, message: Message) -> None:
        """Show the message as it is now; an answer that grew is continued, not drawn anew."""
        self._message = message
        if message.role is Role.USER:
            self._question.setText(message.text)
            self._fit_bubble()
            self._show_variants()
            return
        split = split_thinking(message.text)
        self._fold.setVisible(bool(split.thinking))
        if split.thinking:
            is_growing = message.end is AnswerEnd.GROWING
            if split.is_open:
                name = ChatWords.THINKING if is_growing else ChatWords.STOPPED_THINKING
            else:
                name = ChatWords.THOUGHT
            self._fold.setText(name)
            self._thinking.setText(split.thinking)
        self._show_answer_text(split.answer)
        if message.end is not AnswerEnd.GROWING:
            self._show_end()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._actions.show_palette(palette)
        if self._body is not None:
            self._body.show_palette(palette)

    def _build_question(self) -> None:
        bubble = QFrame()
        bubble.setProperty("look", "own")
        self._question = label("", is_wrapping=True)
        self._question.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        inside = QVBoxLayout(bubble)
        inside.setContentsMargins(16, 10, 16, 10)
        inside.addWidget(self._question)
        # A question stands nearer to its answer than to the answer before.
        self._layout.setContentsMargins(0, 10, 0, 0)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._actions, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(bubble, 0)
        self._layout.addLayout(row)
        copy = self._actions.add("copy", ChatWords.COPY)
        copy.clicked.connect(self._on_copy_clicked)
        edit = self._actions.add("edit", ChatWords.EDIT)
        edit.clicked.connect(lambda: self.edit_wanted.emit(self._message.message_id))
        self._add_variant_buttons()

    def _fit_bubble(self) -> None:
        """Make the bubble as wide as its longest line, up to the width of a bubble."""
        lines = self._question.text().split("\n")
        width = max(self._question.fontMetrics().horizontalAdvance(line) for line in lines)
        self._question.setFixedWidth(min(width + 4, MAX_BUBBLE_WIDTH))

    def _build_answer(self) -> None:
        self._fold = QToolButton()
        self._fold.setCheckable(True)
        self._fold.setAccessibleName(DialogWords.SHOW_THINKING)
        self._fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._fold.setArrowType(Qt.ArrowType.RightArrow)
        self._fold.toggled.connect(self._on_fold_toggled)
        self._thinking = label("", "dim", is_wrapping=True)
        self._thinking.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._thinking.hide()
        self._layout.addWidget(self._fold)
        self._layout.addWidget(self._thinking)
        self._body = MarkdownView(self._palette)
        self._body.link_clicked.connect(self.link_clicked)
        self._layout.addWidget(self._body)
        self._line = label("", "dim")
        self._line.setWordWrap(True)
        below = QHBoxLayout()
        below.setSpacing(8)
        below.addWidget(self._line, 1)
        below.addWidget(self._actions, 0, Qt.AlignmentFlag.AlignTop)
        self._layout.addLayout(below)
        again = self._actions.add("regenerate", ChatWords.REGENERATE)
        again.clicked.connect(self.regenerate_wanted)
        copy = self._actions.add("copy", ChatWords.COPY)
        copy.clicked.connect(self._on_copy_clicked)
        self._add_variant_buttons()
        self._actions.hide()

    def _add_variant_buttons(self) -> None:
        self._previous = QToolButton()
        self._previous.setText("‹")
        self._previous.setAccessibleName(ChatWords.PREVIOUS_VARIANT)
        self._previous.clicked.connect(
            lambda: self.variant_wanted.emit(self._message.message_id, -1)
        )
        self._variant = label("", "dim")
        self._next = QToolButton()
        self._next.setText("›")
        self._next.setAccessibleName(ChatWords.NEXT_VARIANT)
        self._next.clicked.connect(lambda: self.variant_wanted.emit(self._message.message_id, 1))
        for widget in (self._previous, self._variant, self._next):
            self._actions.add_widget(widget)
        self._show_variants()

    def _show_variants(self) -> None:
        message = self._message
        has_variants = message.num_variants > 1
        for widget in (self._previous, self._variant, self._next):
            widget.setVisible(has_variants)
        self._variant.setText(phrases.variant_of(message.variant_index, message.num_variants))
        self._previous.setEnabled(message.variant_index > 0)
        self._next.setEnabled(message.variant_index + 1 < message.num_variants)

    def _show_answer_text(self, answer: str) -> None:
        if self._body is None:
            return
        if not answer.startswith(self._shown_answer):
            index = self._layout.indexOf(self._body)
            self._body.hide()
            self._body.deleteLater()
            self._body = MarkdownView(self._palette)
            self._body.link_clicked.connect(self.link_clicked)
            self._layout.insertWidget(index, self._body)
            self._shown_answer = ""
        new = answer[len(self._shown_answer) :]
        if new:
            self._body.append(new)
        self._shown_answer = answer
        self._body.setVisible(bool(answer))

    def _show_end(self) -> None:
        message = self._message
        if self._body is not None:
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
            self._line.setToolTip(phrases.stats_tooltip(message.stats))
        self._line.setText(phrases.DOT.join(part for part in parts if part))
        self._actions.show()
        self._show_variants()

    def _on_fold_toggled(self, is_open: bool) -> None:
        arrow = Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow
        self._fold.setArrowType(arrow)
        self._thinking.setVisible(is_open)

    def _on_copy_clicked(self) -> None:
        text = self._message.text
        if self._message.role is Role.ASSISTANT:
            text = split_thinking(text).answer
        QGuiApplication.clipboard().setText(text.strip())

    def enterEvent(self, event: QEnterEvent) -> None:
        """Show the buttons."""
        self._actions.set_hovered(True)

    def leaveEvent(self, event: QEvent) -> None:
        """Hide the buttons."""
        self._actions.set_hovered(False)
