"""Stretches of text that are as high as they need to be: rich text that flows."""

from PySide6.QtCore import QMimeData, QSize, Qt, QUrl, Signal
from PySide6.QtGui import QCursor, QGuiApplication, QImage, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QToolTip, QWidget

from app.formulas.desk import FormulaDesk, FormulaKey
from app.text.view_words import CodeWords
from app.text.words import ChatWords
from app.theme.palette import Palette
from app.views.formula_text import IMAGE, SCHEME, filled, key_of, picture, written_of
from app.views.nested_code import code_behind, nested_style


def document_style(palette: Palette) -> str:
    """Return the style sheet of text documents, in the subset that Qt understands."""
    return f"""
p {{ margin: 0 0 8px 0; line-height: 140%; }}
li {{ margin: 0 0 4px 0; line-height: 140%; }}
ul, ol {{ margin: 0 0 8px 0; }}
strong, b {{ font-weight: 600; }}
h1, h2 {{ font-size: 17px; font-weight: 600; margin: 8px 0 8px 0; }}
h3, h4, h5, h6 {{ font-size: 15px; font-weight: 600; margin: 8px 0 6px 0; }}
a {{ color: {palette.link}; }}
code, pre {{ background-color: {palette.code}; font-family: monospace; }}
{nested_style(palette)}
blockquote {{ color: {palette.dim}; margin: 0 0 8px 12px; }}
table {{ border-collapse: collapse; margin: 0 0 8px 0; }}
th, td {{ border: 1px solid {palette.line}; padding: 6px; }}
td.quote {{ color: {palette.dim}; border: 0; padding: 0 0 0 10px; }}
td.bar {{ background-color: {palette.line}; border: 0; padding: 0; }}
th {{ font-weight: 600; }}
"""


class FittedText(QTextBrowser):
    """Text without scroll bars whose height follows its content; words break where they must.

    Never loads anything: resources resolve to nothing, links are not opened.
    """

    def __init__(self, look: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", look)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self._cut_px = 0

    def cut_bottom(self, cut_px: int) -> None:
        """Leave out so much at the bottom, where something else is joined on."""
        if cut_px != self._cut_px:
            self._cut_px = cut_px
            self._fit_height()

    def _fit_height(self) -> None:
        document = self.document()
        document.setTextWidth(self.viewport().width())
        height = int(document.size().height() + 0.999) - self._cut_px
        if self.height() != height or self.minimumHeight() != height:
            self.setFixedHeight(height)

    def loadResource(self, kind: int, url: QUrl | str) -> object:
        """Return nothing: text never brings files or pages in."""
        return None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the height to the new width."""
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._fit_height()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave scrolling to the page."""
        event.ignore()

    def sizeHint(self) -> QSize:
        """Return the height of the text."""
        return QSize(super().sizeHint().width(), self.minimumHeight())


class ProseView(FittedText):
    """Rich text; links only emit ``link_clicked``."""

    link_clicked = Signal(str)

    def __init__(
        self, palette: Palette, formulas: FormulaDesk | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__("prose", parent)
        self._ink = palette.text
        self._formulas = formulas
        self._missing: frozenset[FormulaKey] = frozenset()
        """Formulas that are shown as they were written."""
        self._pictures: dict[tuple[FormulaKey, str, str, float], QImage] = {}
        """Formulas as they were drawn: text that grows asks for each of them every time."""
        if formulas is not None:
            formulas.settled.connect(self._on_formula_settled)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.setAccessibleName(ChatWords.ANSWER)
        self.document().setIndentWidth(20)
        self.document().setDefaultStyleSheet(document_style(palette))
        self.anchorClicked.connect(self._on_anchor_clicked)
        self._html = ""
        self._held_html: str | None = None
        self.selectionChanged.connect(self._on_selection_changed)

    def show_html(self, html: str) -> None:
        """Show other text; while a person has text selected, the change waits until they let go."""
        if html == self._html:
            return
        if self.textCursor().hasSelection():
            self._held_html = html
            return
        self._held_html = None
        self._html = html
        shown, self._missing = filled(html, self._formulas)
        self.setHtml(shown)
        self._fit_height()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._ink = palette.text
        self.document().setDefaultStyleSheet(document_style(palette))
        html, self._html = self._html, ""
        self.show_html(html)

    def _on_formula_settled(self, key: FormulaKey) -> None:
        if key in self._missing and self._formulas and self._formulas.find(key) is not None:
            html = self._held_html or self._html
            self._html = ""
            self.show_html(html)

    def _on_selection_changed(self) -> None:
        if self._held_html is not None and not self.textCursor().hasSelection():
            self.show_html(self._held_html)

    def _on_anchor_clicked(self, url: QUrl) -> None:
        code = code_behind(url.toString(), self._html)
        if code is None:
            self.link_clicked.emit(url.toString())
            return
        QGuiApplication.clipboard().setText(code)
        QToolTip.showText(QCursor.pos(), CodeWords.COPIED, self)

    def loadResource(self, kind: int, url: QUrl | str) -> object:
        """Return the picture of a formula, and nothing else."""
        address = QUrl(url).toString(QUrl.ComponentFormattingOption.FullyEncoded)
        scheme, _, rest = address.partition(":")
        if scheme != SCHEME or self._formulas is None:
            return None
        key = key_of(rest)
        formula = self._formulas.find(key)
        if formula is None:
            return None
        font, pixel_ratio = self.font(), self.devicePixelRatioF()
        drawn = (key, self._ink, font.key(), pixel_ratio)
        if drawn not in self._pictures:
            self._pictures[drawn] = picture(formula, self._ink, font, pixel_ratio)
        return self._pictures[drawn]

    def createMimeDataFromSelection(self) -> QMimeData:
        """Return the selected text, with formulas as they were written."""
        selected = self.textCursor().selection()
        sources = iter(IMAGE.findall(selected.toHtml()))
        pieces = selected.toPlainText().split("\ufffc")
        if len(pieces) == 1:
            return super().createMimeDataFromSelection()
        text = pieces[0] + "".join(written_of(next(sources, "")) + piece for piece in pieces[1:])
        data = QMimeData()
        data.setText(text)
        return data
