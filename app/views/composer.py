"""Where a question is written and sent, files are added, and an answer is stopped."""

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.text import chat_phrases, phrases
from app.text.view_words import DialogWords
from app.text.words import ChatWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.flow_layout import FlowLayout
from app.views.pieces import IconButton, button, label, set_look
from app.views.preset_button import PresetButton
from app.views.question_field import QuestionField

_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
"""Dropped files of a model belong to the window, which looks for their folder."""


class Composer(QWidget):
    """The question field with its buttons, the context meter, and choices when that is full."""

    sent = Signal(str)
    stopped = Signal()
    changed = Signal(str)
    """The draft as it is now."""
    new_chat_wanted = Signal()
    """Ask this in a new chat."""
    longer_context_wanted = Signal()
    shorten_wanted = Signal()
    leave_out_wanted = Signal()
    """Tell the model less of the beginning of the chat."""
    tell_all_wanted = Signal()

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMaximumWidth(metrics.TEXT_COLUMN_WIDTH)
        self.setAcceptDrops(True)
        self.field = QuestionField(is_enter_sending=True)
        self.edit = self.field.edit
        self.edit.setProperty("look", "composer")
        self.edit.setFixedHeight(76)
        self.field.sent.connect(self._send)
        self.field.changed.connect(self._on_changed)
        self.attach_button = IconButton("attach", ChatWords.ATTACH, palette)
        self.attach_button.clicked.connect(self._ask_for_files)
        self.preset_button = PresetButton()
        self.meter = label("", "dim", is_wrapping=True)
        self.send_button = button(ChatWords.SEND, "primary")
        self.send_button.clicked.connect(self._send)
        self.stop_button = button(ChatWords.STOP)
        self.stop_button.clicked.connect(self.stopped)
        below = QHBoxLayout()
        below.addWidget(self.attach_button)
        below.addWidget(self.preset_button)
        below.addWidget(self.meter, 1)
        below.addWidget(self.stop_button)
        below.addWidget(self.send_button)
        self.choices = self._make_choices()
        self.summary_text = label("", "dim", is_wrapping=True)
        self.summary_text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.summary_text.hide()
        self.untold = self._make_untold()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(10)
        layout.addWidget(self.field)
        layout.addLayout(below)
        layout.addWidget(self.choices)
        layout.addWidget(self.untold)
        layout.addWidget(self.summary_text)
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

    def show_context(
        self, used_tokens: int, context_tokens: int, prompt_tokens: int | None
    ) -> None:
        """Show how full the context is, and would be with the question where that was counted."""
        is_full = prompt_tokens is not None and prompt_tokens >= context_tokens > 0
        set_look(self.meter, "look", "problem" if is_full else "dim")
        self.choices.setVisible(is_full)
        if not context_tokens:
            self.meter.setText("")
        elif prompt_tokens is None:
            self.meter.setText(phrases.context_line(used_tokens, context_tokens))
        else:
            self.meter.setText(chat_phrases.counted_line(prompt_tokens, context_tokens))

    def show_shortening(self) -> None:
        """Show that the model writes a summary; nothing else can be chosen meanwhile."""
        self.choices.hide()
        set_look(self.meter, "look", "dim")
        self.meter.setText(ChatWords.SHORTENING)

    def show_chat(self, num_messages: int, num_untold: int, summary: str = "") -> None:
        """Show how many messages of the chat the model is not told, and offer what makes room."""
        self.shorten_button.setVisible(num_untold < num_messages)
        self.new_chat_button.setVisible(num_messages > 0)
        self.leave_out_button.setVisible(num_untold < num_messages)
        words = chat_phrases.summed_up if summary else chat_phrases.untold
        self.untold_text.setText(words(num_untold))
        self.untold.setVisible(num_untold > 0)
        self.summary_text.setText(summary)
        self.summary_button.setVisible(bool(summary))
        self._show_summary()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.attach_button.show_palette(palette)

    def _make_choices(self) -> QWidget:
        """Return what can be done about a question that is too long."""
        self.new_chat_button = button(ChatWords.MOVE_TO_NEW)
        self.new_chat_button.clicked.connect(self.new_chat_wanted)
        self.longer_button = button(ChatWords.LONGER_CONTEXT)
        self.longer_button.clicked.connect(self.longer_context_wanted)
        self.leave_out_button = button(ChatWords.LEAVE_OUT)
        self.leave_out_button.clicked.connect(self.leave_out_wanted)
        self.shorten_button = button(ChatWords.SHORTEN)
        self.shorten_button.setToolTip(ChatWords.SHORTEN_EXPLAINED)
        self.shorten_button.clicked.connect(self.shorten_wanted)
        return _row(
            self.shorten_button, self.leave_out_button, self.new_chat_button, self.longer_button
        )

    def _make_untold(self) -> QWidget:
        """Return what says that the model does not see all, with the way back."""
        self.untold_text = label("", "dim")
        self.tell_all_button = button(ChatWords.TELL_ALL, "quiet")
        self.tell_all_button.clicked.connect(self.tell_all_wanted)
        self.summary_button = button(ChatWords.READ_SUMMARY, "quiet")
        self.summary_button.setCheckable(True)
        self.summary_button.toggled.connect(self._show_summary)
        return _row(self.untold_text, self.summary_button, self.tell_all_button)

    def _show_summary(self) -> None:
        """Show the summary that the model is told, if the person wants to read it."""
        is_there = bool(self.summary_text.text())
        self.summary_text.setVisible(is_there and self.summary_button.isChecked())

    def _show_send(self) -> None:
        self.send_button.setEnabled(self._can_ask and not self.field.is_empty())

    def _on_changed(self) -> None:
        self._show_send()
        self.changed.emit(self.field.text())

    def _send(self) -> None:
        text = self.field.text().strip()
        if text and self._can_ask:
            self.sent.emit(text)

    def _ask_for_files(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self, DialogWords.ATTACH_TITLE)
        for path in paths:
            self.field.attach(Path(path))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Welcome files of text; what else is dragged is the window's."""
        if _text_files(event.mimeData()):
            event.acceptProposedAction()
        else:
            event.ignore()

    def dropEvent(self, event: QDropEvent) -> None:
        """Add the files to the question."""
        for path in _text_files(event.mimeData()):
            self.field.attach(path)
        event.acceptProposedAction()


def _row(*widgets: QWidget) -> QWidget:
    """Return widgets beside each other, in more lines where the window is narrow, hidden."""
    holder = QWidget()
    row = FlowLayout(holder, 2 * metrics.GRID)
    for widget in widgets:
        row.addWidget(widget)
    holder.hide()
    return holder


def _text_files(data: QMimeData) -> list[Path]:
    """Return the files of a drag if all could be text; none otherwise."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    is_text = all(path.is_file() and path.suffix.lower() not in _WEIGHTS for path in paths)
    return paths if is_text and len(paths) == len(data.urls()) else []
