"""What a question and an answer have in common: their signals and their buttons."""

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.state.chat_values import Message
from app.text import phrases
from app.text.words import ChatWords
from app.theme.palette import Palette
from app.views.pieces import IconButton, ToolButton, label


class MessageActions(QWidget):
    """The buttons of a message; seen while the pointer or the focus is in the message."""

    variant_wanted = Signal(int)
    """One step forward or back."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._buttons: list[IconButton] = []
        self._steps: tuple[QToolButton, QLabel, QToolButton] | None = None
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

    def show_variants(self, index: int, number: int) -> None:
        """Show which variant this is, with buttons to the others; nothing where there is one."""
        if self._steps is None:
            if number < 2:
                return
            self._steps = (
                self._step("‹", ChatWords.PREVIOUS_VARIANT, -1),
                label("", "dim"),
                self._step("›", ChatWords.NEXT_VARIANT, 1),
            )
            for widget in self._steps:
                self._layout.addWidget(widget)
        before, text, after = self._steps
        for widget in self._steps:
            widget.setVisible(number > 1)
        text.setText(phrases.variant_of(index, number))
        before.setEnabled(index > 0)
        after.setEnabled(index + 1 < number)

    def set_hovered(self, is_hovered: bool) -> None:
        """Tell whether the pointer is in the message."""
        self._is_hovered = is_hovered
        self._reveal()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._reveal()

    def _step(self, sign: str, name: str, step: int) -> QToolButton:
        button = ToolButton()
        button.setText(sign)
        button.setAccessibleName(name)
        button.clicked.connect(lambda: self.variant_wanted.emit(step))
        return button

    def _reveal(self) -> None:
        is_seen = self._is_hovered or any(button.hasFocus() for button in self._buttons)
        for button in self._buttons:
            button.set_revealed(is_seen, self._palette)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the buttons while one of them has the focus."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self._reveal()
        return False


class MessageView(QFrame):
    """One message of the open chat; ``QuestionView`` and ``AnswerView`` say how it looks."""

    edit_wanted = Signal(object)
    """Message id."""
    regenerate_wanted = Signal()
    continue_wanted = Signal()
    variant_wanted = Signal(object, int)
    """Message id, and one step forward or back."""
    link_clicked = Signal(str)
    unfolded = Signal()
    """The person opened a part of it."""
    drew = Signal()
    """A part was drawn that did not fit into the slice of time before."""

    def __init__(self, message: Message, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._message = message
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._actions = MessageActions(palette)
        self._actions.variant_wanted.connect(
            lambda step: self.variant_wanted.emit(self._message.message_id, step)
        )

    @property
    def message(self) -> Message:
        """What is shown."""
        return self._message

    @property
    def is_drawn(self) -> bool:
        """Whether nothing is left to be drawn later."""
        return True

    def show_message(self, message: Message) -> None:
        """Show the message as it is now."""
        self._message = message

    def show_offer(self, *, is_last: bool, can_ask: bool, can_continue: bool) -> None:
        """Offer what can be done with the last message: ask it again, or let it go on."""

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._actions.show_palette(palette)

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._message.text.strip())

    def enterEvent(self, event: QEnterEvent) -> None:
        """Show the buttons."""
        self._actions.set_hovered(True)

    def leaveEvent(self, event: QEvent) -> None:
        """Hide the buttons."""
        self._actions.set_hovered(False)
