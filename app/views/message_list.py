"""The messages of the open chat in one scrolling column."""

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication, QEvent, Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.formulas.desk import FormulaDesk
from app.state.chat_values import Message
from app.text.words import ChatWords
from app.theme import metrics
from app.theme.palette import Palette
from app.timers import DRAW_SLICE_S, single_shot
from app.views.answer_view import AnswerView
from app.views.message_view import MessageView
from app.views.pieces import button, label, remove
from app.views.question_view import QuestionView
from runtime.protocol.chat import GenerationStats, Role

MAX_DRAWN_MESSAGES = 40
"""Earlier ones are drawn when asked for, so that a long chat opens at once."""
HOLD_MS = 300
"""For so long after something was drawn, the distance from the end is kept."""
_END_PX = 24
"""This near to the end a person is at the end."""


class MessageList(QScrollArea):
    """Shows messages; follows the end while the person is there, and never pulls them away.

    Messages are drawn from the last upwards, a slice at a time; what is on the screen meanwhile
    keeps its distance from the end::

        messages: 0 1 2 3 4 5 6 7 8        drawn: [5][6][7][8], next 4
    """

    edit_wanted = Signal(object)
    regenerate_wanted = Signal()
    continue_wanted = Signal()
    variant_wanted = Signal(object, int)
    link_clicked = Signal(str)

    def __init__(
        self,
        palette: Palette,
        note: Callable[[GenerationStats], str],
        formulas: FormulaDesk | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._palette = palette
        self._note = note
        self._formulas = formulas
        self._views: list[MessageView] = []
        self._messages: tuple[Message, ...] = ()
        self._max_drawn = MAX_DRAWN_MESSAGES
        self._can_ask = False
        self._can_continue = False
        self._is_following = True
        self._is_moving = False
        self._end_distance = 0
        self.setWidgetResizable(True)
        self.setProperty("look", "scroller")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(ChatWords.MESSAGES)
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
        self._drawing = single_shot(self, 0, self._draw)
        self._holding = QTimer(self)
        self._holding.setSingleShot(True)
        self._holding.setInterval(HOLD_MS)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        bar.rangeChanged.connect(self._on_range_changed)

    @property
    def is_drawn(self) -> bool:
        """Whether all messages are there that should be, as a whole."""
        return not self._drawing.isActive() and all(view.is_drawn for view in self._views)

    def show_messages(self, messages: Sequence[Message], *, is_other_chat: bool) -> None:
        """Show these messages; those that are the same stay as they are."""
        if is_other_chat:
            self._max_drawn = MAX_DRAWN_MESSAGES
            self._is_following = True
        self._messages = tuple(messages)
        wanted = {message.message_id: message for message in self._wanted()}
        kept: list[MessageView] = []
        for view in self._views:
            message = wanted.get(view.message.message_id)
            if message is None or message.role is not view.message.role:
                remove(self._column, view)
                continue
            if view.message != message:
                view.show_message(message)
            kept.append(view)
        self._views = kept
        self._earlier.setVisible(len(wanted) < len(self._messages))
        self._draw()

    def grow(self, message: Message) -> None:
        """Show the last message as it is now."""
        if self._messages and self._messages[-1].message_id == message.message_id:
            self._messages = (*self._messages[:-1], message)
        if self._views and self._views[-1].message.message_id == message.message_id:
            self._views[-1].show_message(message)

    def show_progress(self, text: str) -> None:
        """Show what is being waited for below the last message; empty hides it."""
        self._progress.setText(text)
        self._progress.setVisible(bool(text))

    def show_can_ask(self, can_ask: bool, *, can_continue: bool = False) -> None:
        """Tell whether the last message could be asked again now, or go on."""
        self._can_ask = can_ask
        self._can_continue = can_continue
        self._show_offer()

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

    def put_away(self) -> None:
        """Take all messages off the window until ``show_palette``.

        A new style sheet looks at every widget there is, and this page has the most.
        """
        self._drawing.stop()
        self._holding.start()
        for view in self._views:
            remove(self._column, view)
            QCoreApplication.sendPostedEvents(view, QEvent.Type.DeferredDelete.value)
        self._views = []

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for view in self._views:
            view.show_palette(palette)
        if len(self._views) < len(self._wanted()):
            self._drawing.start()

    def _wanted(self) -> tuple[Message, ...]:
        return self._messages[-self._max_drawn :]

    def _draw(self) -> None:
        """Draw messages that are not there yet, from the last upwards, for a slice of time."""
        self._drawing.stop()
        end_s = time.perf_counter() + DRAW_SLICE_S
        drawn = {view.message.message_id: view for view in self._views}
        views: list[MessageView] = []
        is_late = False
        for message in reversed(self._wanted()):
            view = drawn.get(message.message_id)
            if view is None:
                if is_late:
                    break
                view = self._new_view(message)
                # Behind what stands above it; the first place is the button's.
                above = sum(1 for each in self._views if each not in views)
                self._column.insertWidget(1 + above, view)
                self._holding.start()
                is_late = time.perf_counter() > end_s
            views.append(view)
        self._views = [view for view in self._views if view not in views] + views[::-1]
        self._show_offer()
        if len(self._views) < len(self._wanted()):
            self._drawing.start()

    def _show_offer(self) -> None:
        last = self._messages[-1].message_id if self._messages else None
        for view in self._views:
            view.show_offer(
                is_last=view.message.message_id == last,
                can_ask=self._can_ask,
                can_continue=self._can_continue,
            )

    def _new_view(self, message: Message) -> MessageView:
        view: MessageView
        if message.role is Role.USER:
            view = QuestionView(message, self._palette)
        else:
            view = AnswerView(message, self._palette, self._note, self._formulas)
        view.edit_wanted.connect(self.edit_wanted)
        view.regenerate_wanted.connect(self.regenerate_wanted)
        view.continue_wanted.connect(self.continue_wanted)
        view.variant_wanted.connect(self.variant_wanted)
        view.link_clicked.connect(self.link_clicked)
        view.unfolded.connect(self._on_unfolded)
        view.drew.connect(self._holding.start)
        return view

    def _on_earlier_clicked(self) -> None:
        self._is_following = False
        self._max_drawn += MAX_DRAWN_MESSAGES
        self._earlier.setVisible(len(self._wanted()) < len(self._messages))
        self._draw()

    def _on_unfolded(self) -> None:
        """A person who opens something wants to read it, and not the end."""
        self._holding.stop()
        self._is_following = False

    def _on_scrolled(self, value: int) -> None:
        if not self._is_moving:
            self._end_distance = self.verticalScrollBar().maximum() - value
            self._is_following = self._end_distance <= _END_PX

    def _on_range_changed(self) -> None:
        if self._is_following:
            self._go_to_end()
        elif self._drawing.isActive() or self._holding.isActive():
            self._move_to(self.verticalScrollBar().maximum() - self._end_distance)

    def _go_to_end(self) -> None:
        self._end_distance = 0
        self._move_to(self.verticalScrollBar().maximum())

    def _move_to(self, value: int) -> None:
        self._is_moving = True
        self.verticalScrollBar().setValue(value)
        self._is_moving = False
