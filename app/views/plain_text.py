"""Text that is shown as it is, of any length: drawn in pieces, so that the window never waits."""

import math
import time

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.text import phrases
from app.text.view_words import DialogWords
from app.timers import DRAW_SLICE_S, single_shot
from app.views.pieces import button, clear_layout
from app.views.prose_view import FittedText

PIECE_CHARACTERS = 2000
"""A piece is laid out as a whole, which must not be felt."""


def cut_of(text: str, start: int) -> tuple[int, int]:
    """Return where the piece that starts at ``start`` ends, and where the next one starts.

    A piece ends at the end of a line if one is near, else between two words, else anywhere. What is
    behind the piece does not matter, so that pieces stay as they are while a text grows.
    """
    end = start + PIECE_CHARACTERS
    for mark in ("\n", " "):
        found = text.rfind(mark, start + PIECE_CHARACTERS // 2, end)
        if found >= 0:
            return found, found + 1
    return end, end


class PlainView(FittedText):
    """One piece of plain text."""

    def __init__(self, look: str, name: str) -> None:
        super().__init__(look)
        self._text = ""
        self.setAccessibleName(name)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )

    def show_text(self, text: str) -> None:
        """Show other text; where it only grew, what a person has selected stays so."""
        if self._text and text.startswith(self._text):
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self._text) :])
        else:
            self.setPlainText(text)
        self._text = text
        self._fit_height()

    def natural_width(self) -> int:
        """Return how wide the text would be without breaks."""
        document = self.document()
        document.setTextWidth(-1)
        width = math.ceil(document.idealWidth()) + 1
        self._fit_height()
        return width


class LongText(QWidget):
    """Plain text in pieces, top to bottom; those that do not fit into one slice are drawn later."""

    def __init__(self, look: str, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = look
        self._name = name
        self._text = ""
        self._start = 0
        self._last: PlainView | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._timer = single_shot(self, 0, self._draw)

    @property
    def is_drawn(self) -> bool:
        """Whether all of the text is there."""
        return not self._timer.isActive()

    def first(self) -> PlainView | None:
        """Return the first piece."""
        item = self._layout.itemAt(0)
        view = item.widget() if item is not None else None
        return view if isinstance(view, PlainView) else None

    def show_text(self, text: str) -> None:
        """Show other text; where it only grew, what is drawn stays."""
        if not (self._text and text.startswith(self._text)):
            clear_layout(self._layout)
            self._start = 0
            self._last = None
        self._text = text
        self._draw()

    def _draw(self) -> None:
        self._timer.stop()
        end_s = time.perf_counter() + DRAW_SLICE_S
        while True:
            if self._last is None:
                self._last = PlainView(self._look, self._name)
                self._layout.addWidget(self._last)
            if len(self._text) - self._start <= PIECE_CHARACTERS:
                self._last.show_text(self._text[self._start :])
                return
            end, start = cut_of(self._text, self._start)
            self._last.show_text(self._text[self._start : end])
            self._start = start
            self._last = None
            if time.perf_counter() > end_s:
                self._timer.start()
                return


class FoldedText(QWidget):
    """The beginning of a text, and all of it when a person wants it; fits its width to it."""

    unfolded = Signal()

    def __init__(self, name: str, max_width: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._max_width = max_width
        self._text = ""
        self._is_open = False
        self.body = LongText("plain", name)
        self.fold_button = button("", "quiet")
        self.fold_button.clicked.connect(self._on_fold_clicked)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.body)
        layout.addWidget(self.fold_button, 0, Qt.AlignmentFlag.AlignLeft)

    def show_text(self, text: str) -> None:
        """Show another text, folded if it is long."""
        if text == self._text:
            return
        self._text = text
        self._is_open = False
        self._show()

    def _show(self) -> None:
        is_long = len(self._text) > PIECE_CHARACTERS
        end = cut_of(self._text, 0)[0] if is_long else len(self._text)
        is_whole = self._is_open or not is_long
        self.body.show_text(self._text if is_whole else self._text[:end] + "…")
        self.fold_button.setVisible(is_long)
        name = DialogWords.SHOW_LESS if self._is_open else phrases.show_all(len(self._text))
        self.fold_button.setText(name)
        self.fold_button.setAccessibleName(name)
        first = self.body.first()
        width = self._max_width if is_long or first is None else first.natural_width()
        self.setFixedWidth(min(width, self._max_width))

    def _on_fold_clicked(self) -> None:
        self._is_open = not self._is_open
        if self._is_open:
            self.unfolded.emit()
        self._show()
