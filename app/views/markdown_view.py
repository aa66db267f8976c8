"""Markdown drawn as it arrives: prose flows, code stands in frames of its own."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme.palette import Palette
from app.views.code_view import CodeView
from app.views.markdown import Block, Code, MarkdownStream, Prose
from app.views.prose_view import ProseView

MAX_GROUP_CHARACTERS = 4000
"""Prose is re-laid in groups of about this size, so that an update never costs the whole answer."""


class MarkdownView(QWidget):
    """The body of one message.

    Drawing, top to bottom: settled views, then the open group (settled HTML that still shares a
    view with the end) and the open block::

        [prose][code][prose] | group: <p>..</p><p>..</p> + <p>the end, still gro
    """

    link_clicked = Signal(str)

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._stream = MarkdownStream()
        self._group = ""
        self._prose: ProseView | None = None
        self._code: CodeView | None = None
        self._source = ""
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(8)

    def source(self) -> str:
        """Return the Markdown shown."""
        return self._source

    def append(self, text: str) -> None:
        """Show more source at the end."""
        self._source += text
        settled, last = self._stream.append(text)
        for block in settled:
            self._settle(block)
        if last is not None:
            self._show_open(last)

    def finish(self) -> None:
        """Highlight what was still open: nothing follows."""
        if self._code is not None:
            self._code.settle()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for index in range(self._layout.count()):
            item = self._layout.itemAt(index)
            view = item.widget() if item is not None else None
            if isinstance(view, ProseView | CodeView):
                view.show_palette(palette)

    def _settle(self, block: Block) -> None:
        match block:
            case Code():
                self._show_open(block)
                if self._code is not None:
                    self._code.settle()
                self._code = None
            case Prose():
                self._show_open(block)
                self._group += block.html
                if len(self._group) > MAX_GROUP_CHARACTERS:
                    self._close_group()

    def _show_open(self, block: Block) -> None:
        match block:
            case Code():
                self._close_group()
                if self._code is None:
                    self._code = CodeView(self._palette)
                    self._layout.addWidget(self._code)
                self._code.show_text(block.text, block.language)
            case Prose():
                self._drop_code()
                if self._prose is None:
                    self._prose = ProseView(self._palette)
                    self._prose.link_clicked.connect(self.link_clicked)
                    self._layout.addWidget(self._prose)
                self._prose.show_html(self._group + block.html)

    def _close_group(self) -> None:
        if self._prose is not None and not self._group:
            # The open block was drawn as prose before it turned out to be code.
            self._layout.removeWidget(self._prose)
            self._prose.deleteLater()
        elif self._prose is not None:
            self._prose.show_html(self._group)
        self._prose = None
        self._group = ""

    def _drop_code(self) -> None:
        """Forget a code view that was open when its block turned out to be prose."""
        if self._code is not None:
            self._layout.removeWidget(self._code)
            self._code.deleteLater()
            self._code = None
