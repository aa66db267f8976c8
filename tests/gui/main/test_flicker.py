"""What moves on the screen while an answer streams at 200 tokens per second, counted."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.views.message_list import MessageList
from tests.gui.main.conftest import StartWindow

PARAGRAPH = "Some **words** and `code` in a paragraph that goes on for a line or two.\n\n"
TEXT = (
    PARAGRAPH * 4
    + "- a\n- b\n\n> a *quote*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\n"
    + "x = 1\n" * 20
    + "```\n\n"
) * 3


class Movements(QObject):
    """Counts what happens in a list of messages; it is asked by what it watches."""

    def __init__(self, messages: MessageList) -> None:
        super().__init__(messages)
        self.num_paints = 0
        """Of the whole list."""
        self.num_hidden = 0
        self.shrunk: list[tuple[int, int]] = []
        """Heights of what is written before and after it became lower."""
        content = messages.widget()
        assert content is not None
        self._content = content
        self._viewport = messages.viewport()
        self._height = self._content.height()
        self._content.installEventFilter(self)
        self._viewport.installEventFilter(self)

    def watch(self, body: QWidget) -> None:
        """Watch the blocks of an answer that are there."""
        for block in body.findChildren(QWidget):
            block.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if watched is self._viewport:
            self.num_paints += kind == QEvent.Type.Paint
        elif watched is self._content:
            if kind == QEvent.Type.Resize:
                before, self._height = self._height, self._content.height()
                if self._height < before:
                    self.shrunk.append((before, self._height))
        elif kind == QEvent.Type.Hide:
            self.num_hidden += 1
        return False


def test_streaming_answer_never_jumps_back_and_is_drawn_once_for_each_growth(
    qtbot: QtBot, start_window: StartWindow, record_property: Callable[[str, object], None]
) -> None:
    window = start_window([TEXT], rate=200)
    chat, messages = window.program.chat, window.program.chat_view.messages
    num_growths = 0

    def on_grew() -> None:
        nonlocal num_growths
        num_growths += 1

    chat.answer_grew.connect(on_grew)
    window.send("Write a lot")
    qtbot.waitUntil(lambda: num_growths > 2, timeout=60_000)
    movements = Movements(messages)
    movements.watch(messages.views()[-1])
    num_before = num_growths
    qtbot.waitUntil(lambda: not chat.is_answering, timeout=60_000)
    growths = num_growths - num_before
    record_property("growths", growths)
    record_property("paints", movements.num_paints)
    assert chat.messages[-1].text == TEXT
    assert growths > 2
    # A growth is drawn, scrolling to it is drawn, and the end adds the line below.
    assert movements.num_paints <= 3 * growths + 10
    assert movements.shrunk == []
    # Only what is written on is ever replaced: the block that is open and the button to it.
    assert movements.num_hidden <= 4
