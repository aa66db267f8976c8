"""Code inside of a list, as it is drawn and copied in an answer."""

from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.theme.palette import DARK, LIGHT
from app.views.markdown_view import MarkdownView
from app.views.prose_view import ProseView

SOURCE = "1. Run:\n\n   ```python\n   import os\n   x = 1 < 2\n   ```\n\n2. Done."


def test_code_in_a_list_is_drawn_in_colour_and_copied_by_its_link(qtbot: QtBot) -> None:
    view = MarkdownView(LIGHT)
    qtbot.addWidget(view)
    view.append(SOURCE)
    view.finish()
    (prose,) = view.findChildren(ProseView)
    assert LIGHT.code_keyword.lower() in prose.toHtml().lower()
    view.show_palette(DARK)
    assert DARK.code_keyword.lower() in prose.toHtml().lower()
    links = [each for each in prose.toHtml().split('"') if each.startswith("copy-code:")]
    opened: list[str] = []
    view.link_clicked.connect(opened.append)
    prose.anchorClicked.emit(QUrl(links[0]))
    assert QGuiApplication.clipboard().text() == "import os\nx = 1 < 2"
    prose.anchorClicked.emit(QUrl("https://example.org"))
    assert opened == ["https://example.org"]


def test_long_line_of_code_in_a_list_is_not_cut(qtbot: QtBot) -> None:
    view = MarkdownView(LIGHT)
    qtbot.addWidget(view)
    view.resize(300, 400)
    view.show()
    view.append("- ```\n  " + "word " * 60 + "\n  ```")
    (prose,) = view.findChildren(ProseView)
    qtbot.waitUntil(lambda: prose.document().idealWidth() <= prose.viewport().width() + 1)
