"""Notices above a page: what happened, what to do next, details for those who want them."""

import enum
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.text.view_words import DialogWords
from app.text.words import ShellWords
from app.theme.palette import Palette
from app.views.pieces import IconButton, button, clear_layout, label, set_look

Action = tuple[str, Callable[[], None]]


class NoticeSource(enum.Enum):
    """What a notice is about; each has a row of its own, in this order."""

    ENGINE = "engine"
    RESTED = "rested"
    ANSWER = "answer"
    EXPORT = "export"
    IMPORT = "import"
    CHATS = "chats"
    CHATS_DAMAGED = "chats_damaged"
    SETTINGS = "settings"
    DROP = "drop"
    DELETED = "deleted"
    REMOVED = "removed"
    DOWNLOADED = "downloaded"
    UPDATE = "update"
    CARD = "card"


class NoticeRow(QFrame):
    """The notice of one source; hidden while there is none."""

    closed = Signal()

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "error")
        self._headline = label("", "strong", is_wrapping=True)
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
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._headline)
        words.addWidget(self._text)
        head = QHBoxLayout()
        head.addLayout(words, 1)
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

    def headline(self) -> str:
        """Return what stands above the sentence; empty where it speaks for itself."""
        return self._headline.text()

    def show_notice(
        self,
        text: str,
        actions: Sequence[Action],
        *,
        headline: str,
        detail: str,
        is_error: bool,
        on_closed: Callable[[], None] | None,
    ) -> None:
        """Show a notice in place of the one before; screen readers are told."""
        set_look(self, "look", "error" if is_error else "card")
        self._headline.setText(headline)
        self._headline.setVisible(bool(headline))
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
        self.setAccessibleName(f"{headline}. {text}" if headline else text)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def change_text(self, text: str) -> None:
        """Say another sentence in the same notice, as how far something is."""
        self._text.setText(text)
        self.setAccessibleName(text)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._close.show_palette(palette)

    def _on_close_clicked(self) -> None:
        self.hide()
        self.closed.emit()
        if self._on_closed is not None:
            self._on_closed()

    def _on_copy_clicked(self) -> None:
        parts = (self.headline(), self._text.text(), self._detail_text)
        QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))


class NoticeBar(QWidget):
    """All notices there are, one row for each source: none replaces another source's."""

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._rows: dict[NoticeSource, NoticeRow] = {}
        self._layout = QVBoxLayout(self)
        self._fit_margins()
        self._layout.setSpacing(6)

    def text(self) -> str:
        """Return the sentences shown, one a line; empty while there are none."""
        texts = (self._rows[source].text() for source in NoticeSource if source in self._rows)
        return "\n".join(text for text in texts if text)

    def row(self, source: NoticeSource) -> NoticeRow | None:
        """Return the row of a source while it is shown."""
        row = self._rows.get(source)
        return None if row is None or row.isHidden() else row

    def show_notice(
        self,
        source: NoticeSource,
        text: str,
        actions: Sequence[Action] = (),
        *,
        headline: str = "",
        detail: str = "",
        is_error: bool = True,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        """Show a notice in place of the one before of the same source."""
        if source not in self._rows:
            row = self._rows[source] = NoticeRow(self._palette)
            order = [each for each in NoticeSource if each in self._rows]
            self._layout.insertWidget(order.index(source), row)
            row.closed.connect(self._fit_margins)
        self._rows[source].show_notice(
            text,
            actions,
            headline=headline,
            detail=detail,
            is_error=is_error,
            on_closed=on_closed,
        )
        self._fit_margins()

    def clear(self, *sources: NoticeSource) -> None:
        """Hide the notices of these sources; without any, all notices."""
        for source in sources or tuple(self._rows):
            if source in self._rows:
                self._rows[source].hide()
        self._fit_margins()

    def _fit_margins(self) -> None:
        """Take room only while there is a notice."""
        above = 10 if any(not row.isHidden() for row in self._rows.values()) else 0
        self._layout.setContentsMargins(16, above, 16, 0)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for row in self._rows.values():
            row.show_palette(palette)
