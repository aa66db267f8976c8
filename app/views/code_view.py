"""A code block: language, a copy button, highlighted text that scrolls sideways."""

from collections.abc import Mapping

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextDocument,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.text.view_words import CodeWords
from app.theme.apply import code_font
from app.theme.palette import Palette
from app.views.code_spans import Span, highlight_spans
from app.views.pieces import ToolButton


class _Highlighter(QSyntaxHighlighter):
    """Colours the lines of a document from spans that were found before."""

    def __init__(self, document: QTextDocument, palette: Palette) -> None:
        super().__init__(document)
        self._lines: list[list[Span]] = []
        self._formats = _formats(palette)

    def show(self, lines: list[list[Span]], palette: Palette) -> None:
        """Colour the whole document anew."""
        self._lines = lines
        self._formats = _formats(palette)
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        """Colour one line; called by Qt."""
        number = self.currentBlock().blockNumber()
        if number < len(self._lines):
            for start, length, colour in self._lines[number]:
                self.setFormat(start, length, self._formats[colour])


def _formats(palette: Palette) -> Mapping[str, QTextCharFormat]:
    formats = {}
    for name in ("code_keyword", "code_string", "code_number", "code_comment", "code_name"):
        formats[name] = QTextCharFormat()
        formats[name].setForeground(QColor(getattr(palette, name)))
    return formats


class CodeView(QFrame):
    """One code block; grows while it streams and is highlighted once it is settled."""

    copied = Signal()

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "code")
        self._palette = palette
        self._text = ""
        self._language = ""
        self._language_label = QLabel()
        self._language_label.setProperty("look", "dim")
        self._copy_button = ToolButton()
        self._copy_button.setText(CodeWords.COPY)
        self._copy_button.setAccessibleName(CodeWords.COPY_CODE)
        self._copy_button.clicked.connect(self._on_copy_clicked)
        self._editor = QPlainTextEdit()
        self._editor.setProperty("look", "code")
        self._editor.setReadOnly(True)
        self._editor.setFrameShape(QFrame.Shape.NoFrame)
        self._editor.setFont(code_font())
        self._editor.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._editor.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._editor.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._editor.setAccessibleName(CodeWords.CODE)
        self._editor.setTabChangesFocus(True)
        self._editor.installEventFilter(self)
        self._highlighter = _Highlighter(self._editor.document(), palette)
        head = QHBoxLayout()
        head.setContentsMargins(0, 0, 0, 0)
        head.addWidget(self._language_label)
        head.addStretch(1)
        head.addWidget(self._copy_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 4, 8, 8)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self._editor)

    def text(self) -> str:
        """Return the code."""
        return self._text

    def show_text(self, text: str, language: str) -> None:
        """Show the code as it is now; only what is new at the end is added."""
        self._language = language
        self._language_label.setText(language)
        if text.startswith(self._text) and self._text:
            cursor = self._editor.textCursor()
            cursor.movePosition(cursor.MoveOperation.End)
            cursor.insertText(text[len(self._text) :])
        else:
            self._editor.setPlainText(text)
        self._text = text
        self._fit_height()

    def settle(self) -> None:
        """Highlight: the code will not change any more."""
        self._highlighter.show(highlight_spans(self._text, self._language), self._palette)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self.settle()

    def _fit_height(self) -> None:
        lines = max(1, self._editor.document().blockCount())
        height = lines * self._editor.fontMetrics().lineSpacing() + 10
        bar = self._editor.horizontalScrollBar()
        if bar.maximum() > 0:
            height += bar.sizeHint().height()
        if self._editor.height() != height:
            self._editor.setFixedHeight(height)

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._text)
        self._copy_button.setText(CodeWords.COPIED)
        QTimer.singleShot(1500, self, lambda: self._copy_button.setText(CodeWords.COPY))
        self.copied.emit()

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        """Pass the wheel on to the page: the block itself never scrolls up or down."""
        if watched is self._editor and event.type() == QEvent.Type.Wheel:
            event.ignore()
            return True
        if watched is self._editor and event.type() == QEvent.Type.Resize:
            self._fit_height()
        return False
