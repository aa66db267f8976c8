"""A notice above a page: what happened, what to do next, details for those who want them."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.text.view_words import DialogWords
from app.text.words import ShellWords
from app.theme.palette import Palette
from app.views.pieces import IconButton, button, clear_layout, label, set_look

Action = tuple[str, Callable[[], None]]


class NoticeBar(QFrame):
    """One notice at a time; hidden while there is none."""

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "error")
        self._text = label("", is_wrapping=True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._detail_text = ""
        self._detail = label("", "dim", is_wrapping=True)
        self._detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._detail.hide()
        self._actions = QHBoxLayout()
        self._actions.setSpacing(6)
        self._close = IconButton("close", DialogWords.HIDE_NOTICE, palette, 14)
        self._close.clicked.connect(self._on_close_clicked)
        self._on_closed: Callable[[], None] | None = None
        head = QHBoxLayout()
        head.addWidget(self._text, 1)
        head.addLayout(self._actions)
        head.addWidget(self._close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 8, 8, 8)
        layout.setSpacing(6)
        layout.addLayout(head)
        layout.addWidget(self._detail)
        self.hide()

    def text(self) -> str:
        """Return the sentence shown, empty while hidden."""
        return "" if self.isHidden() else self._text.text()

    def show_notice(
        self,
        text: str,
        actions: Sequence[Action] = (),
        *,
        detail: str = "",
        is_error: bool = True,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        """Show a notice in place of the one before; screen readers are told."""
        set_look(self, "look", "error" if is_error else "card")
        self._text.setText(text)
        self._detail_text = detail
        self._detail.setText(detail)
        self._detail.hide()
        self._on_closed = on_closed
        clear_layout(self._actions)
        for name, act in actions:
            choice = button(name)
            choice.clicked.connect(lambda _=False, act=act: act())
            self._actions.addWidget(choice)
        if detail:
            details = button(ShellWords.DETAILS, "quiet")
            details.clicked.connect(lambda: self._detail.setVisible(self._detail.isHidden()))
            copy = button(ShellWords.COPY_DETAILS, "quiet")
            copy.clicked.connect(self._on_copy_clicked)
            self._actions.addWidget(details)
            self._actions.addWidget(copy)
        self.setAccessibleName(text)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def clear(self) -> None:
        """Hide the notice."""
        self.hide()

    def clear_error(self) -> None:
        """Hide the notice if it is about something that failed and is now mended."""
        if self.property("look") == "error":
            self.hide()

    def _on_close_clicked(self) -> None:
        self.hide()
        if self._on_closed is not None:
            self._on_closed()

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(f"{self._text.text()}\n\n{self._detail_text}")

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._close.show_palette(palette)


def framed(notice: NoticeBar) -> QWidget:
    """Return a widget that gives a notice its margins while it is shown, and no room otherwise."""
    frame = QWidget()
    layout = QVBoxLayout(frame)
    layout.setContentsMargins(16, 0, 16, 0)
    layout.setSpacing(0)
    layout.addWidget(notice)
    return frame
