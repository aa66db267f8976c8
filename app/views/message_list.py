"""The messages of the open chat in one scrolling column."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.state.chat_values import Message
from app.text.words import ChatWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.message_view import MessageView
from app.views.pieces import button, label
from runtime.protocol.chat import GenerationStats

MAX_DRAWN_MESSAGES = 40
"""Earlier ones are drawn when asked for, so that a long chat opens at once."""


class MessageList(QScrollArea):
    """Shows messages; follows the end while the person is there, and never pulls them away."""

    edit_wanted = Signal(object)
    regenerate_wanted = Signal()
    variant_wanted = Signal(object, int)
    link_clicked = Signal(str)

    def __init__(
        self,
        palette: Palette,
        note: Callable[[GenerationStats], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._palette = palette
        self._note = note
        self._views: list[MessageView] = []
        self._messages: tuple[Message, ...] = ()
        self._max_drawn = MAX_DRAWN_MESSAGES
        self._is_following = True
        self._is_moving = False
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(ChatWords.CHATS)
        page = QWidget()
        outside = QHBoxLayout(page)
        outside.setContentsMargins(16, 18, 16, 12)
        column = QWidget()
        column.setMaximumWidth(metrics.TEXT_COLUMN_WIDTH)
        outside.addStretch(1)
        outside.addWidget(column, 100)
        outside.addStretch(1)
        self._column = QVBoxLayout(column)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(14)
        self._earlier = button(ChatWords.EARLIER, "quiet")
        self._earlier.clicked.connect(self._on_earlier_clicked)
        self._earlier.hide()
        self._column.addWidget(self._earlier)
        self._progress = label("", "dim")
        self._progress.hide()
        self._column.addWidget(self._progress)
        self._column.addStretch(1)
        self.setWidget(page)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        bar.rangeChanged.connect(self._on_range_changed)

    def show_messages(self, messages: Sequence[Message], *, is_other_chat: bool) -> None:
        """Show these messages; those that are the same stay as they are."""
        if is_other_chat:
            self._max_drawn = MAX_DRAWN_MESSAGES
            self._is_following = True
        self._messages = tuple(messages)
        drawn = self._messages[-self._max_drawn :]
        self._earlier.setVisible(len(drawn) < len(self._messages))
        old = {view.message.message_id: view for view in self._views}
        views: list[MessageView] = []
        for message in drawn:
            view = old.pop(message.message_id, None)
            if view is None or view.message.role is not message.role:
                view = self._new_view(message)
            elif view.message != message:
                view.show_message(message)
            views.append(view)
        kept = set(views)
        for view in self._views:
            if view not in kept:
                self._column.removeWidget(view)
                view.hide()
                view.deleteLater()
        for index, view in enumerate(views, start=1):
            if self._column.indexOf(view) != index:
                self._column.insertWidget(index, view)
        self._views = views

    def grow(self, message: Message) -> None:
        """Show the last message as it is now."""
        if self._views and self._views[-1].message.message_id == message.message_id:
            self._views[-1].show_message(message)

    def show_progress(self, text: str) -> None:
        """Show what is being waited for below the last message; empty hides it."""
        self._progress.setText(text)
        self._progress.setVisible(bool(text))

    def progress(self) -> str:
        """Return what is being waited for, empty if nothing is."""
        return "" if self._progress.isHidden() else self._progress.text()

    def views(self) -> list[MessageView]:
        """Return the drawn messages, oldest first."""
        return list(self._views)

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._is_following = True
        self._go_to_end()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for view in self._views:
            view.show_palette(palette)

    def _new_view(self, message: Message) -> MessageView:
        view = MessageView(message, self._palette, self._note)
        view.edit_wanted.connect(self.edit_wanted)
        view.regenerate_wanted.connect(self.regenerate_wanted)
        view.variant_wanted.connect(self.variant_wanted)
        view.link_clicked.connect(self.link_clicked)
        return view

    def _on_earlier_clicked(self) -> None:
        self._is_following = False
        self._max_drawn += MAX_DRAWN_MESSAGES
        self.show_messages(self._messages, is_other_chat=False)

    def _on_scrolled(self, value: int) -> None:
        if not self._is_moving:
            self._is_following = value >= self.verticalScrollBar().maximum() - 24

    def _on_range_changed(self) -> None:
        if self._is_following:
            self._go_to_end()

    def _go_to_end(self) -> None:
        bar = self.verticalScrollBar()
        self._is_moving = True
        bar.setValue(bar.maximum())
        self._is_moving = False
