"""Formulas in answers: found in Markdown, shown as written until they are set, then drawn."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QColor, QFont, QImage, QTextCursor
from pytestqt.qtbot import QtBot

from app.formulas.desk import Formula, FormulaDesk, FormulaKey
from app.formulas.typeset import INK
from app.theme.palette import DARK, LIGHT
from app.views import prose_view
from app.views.formula_text import IMAGE, MAX_WIDTH_PX, key_of, mark_of, picture, written
from app.views.markdown import MarkdownStream, Prose, Table, blocks_of
from app.views.markdown_view import MarkdownView
from app.views.prose_view import ProseView

RATIO = FormulaKey(r"\frac{a}{b}", is_block=False)
BAR = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -10 40 14">'
    f'<rect x="0" y="-10" width="40" height="14" fill="{INK}"/></svg>'
)


class PlayedDesk(FormulaDesk):
    """A desk whose formulas the test sets."""

    def find(self, key: FormulaKey) -> Formula | None:
        return self._known.get(key)

    def set(self, key: FormulaKey) -> None:
        self._settle(key, Formula(BAR, 40.0, 10.0, 4.0))


@pytest.fixture
def desk(qtbot: QtBot) -> Iterator[PlayedDesk]:
    desk = PlayedDesk()
    yield desk
    desk.close()


def keys_of(html: str) -> list[FormulaKey]:
    return [key_of(address) for address in IMAGE.findall(html)]


def keys_in(text: str) -> list[FormulaKey]:
    found: list[FormulaKey] = []
    for block in blocks_of(text):
        if isinstance(block, Prose):
            found += keys_of(block.html)
        elif isinstance(block, Table):
            found += [
                key for row in (block.head, *block.rows) for cell in row for key in keys_of(cell)
            ]
    return found


@pytest.mark.parametrize(
    ("text", "latex", "is_block"),
    [
        ("so $a<b$ holds", "a<b", False),
        (r"so \(a_1\) holds", "a_1", False),
        ("so $$a$$ holds", "a", True),
        (r"so \[a\] holds", "a", True),
        ("$$\na\n\nb\n$$", "a\n\nb", True),
        ("\\[\na\n\\]", "a", True),
        ("\\[ a \\]\nnext", "a", True),
        ("> \\[\n> a\n> \\]", "a", True),
        ("- one\n- \\[ a \\]", "a", True),
        (r"\begin{align}a&=b\end{align}", r"\begin{align}a&=b\end{align}", True),
        ("| x | y |\n|---|---|\n| $a$ | b |", "a", False),
        ("**bold $a*b*c$**", "a*b*c", False),
    ],
)
def test_formula_is_found(text: str, latex: str, is_block: bool) -> None:
    assert keys_in(text) == [FormulaKey(latex, is_block)]


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "from US$3 to US$4",
        "`$a$`",
        "```\n$$a$$\n```",
        "    \\[ a \\]",
        "$$\nopen",
        "\\[\nopen\n\nnext",
        r"\(open",
        r"\( \)",
        r"\\(a\\)",
        r"\$a\$",
        "a $ b $ c",
    ],
)
def test_what_is_no_formula_stays_text(text: str) -> None:
    assert keys_in(text) == []


def test_many_formulas_that_only_begin_take_no_longer_than_other_text() -> None:
    def taken_s(line: str) -> float:
        began_s = time.process_time()
        blocks_of(f"{line}\n" * 4000)
        return time.process_time() - began_s

    assert taken_s("\\[a") < 10 * taken_s("abc")


def test_formula_that_streams_in_is_text_until_it_is_whole() -> None:
    stream = MarkdownStream()
    source = "Before\n\n\\[\nx + y\n\\]\n\nAfter $z$ it"
    seen: list[list[FormulaKey]] = []
    settled_keys: list[FormulaKey] = []
    for character in source:
        settled, last = stream.append(character)
        settled_keys += [
            key for each in settled if isinstance(each, Prose) for key in keys_of(each.html)
        ]
        seen.append(keys_of(last.html) if isinstance(last, Prose) else [])
    assert settled_keys == [FormulaKey("x + y", is_block=True)]
    assert seen[-1] == [FormulaKey("z", is_block=False)]


def test_formula_is_shown_as_written_then_drawn(qtbot: QtBot, desk: PlayedDesk) -> None:
    view = ProseView(LIGHT, desk)
    qtbot.addWidget(view)
    view.show_html(f"<p>so {mark_of(RATIO.latex, is_block=False)} it is</p>")
    assert view.toPlainText() == r"so $\frac{a}{b}$ it is"
    desk.set(FormulaKey("other", is_block=False))
    assert view.toPlainText() == r"so $\frac{a}{b}$ it is"
    desk.set(RATIO)
    assert view.toPlainText() == "so \ufffc it is"
    view.selectAll()
    data = view.createMimeDataFromSelection()
    assert data.text() == r"so $\frac{a}{b}$ it is"
    assert not data.hasHtml()
    view.show_palette(DARK)
    view.show_html("<p>plain <b>words</b></p>")
    view.moveCursor(QTextCursor.MoveOperation.Start)
    view.selectAll()
    assert view.createMimeDataFromSelection().hasHtml()


def test_formula_in_text_that_grows_is_drawn_once_in_each_colour(
    qtbot: QtBot, desk: PlayedDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    colours: list[str] = []

    def draw(formula: Formula, colour: str, font: QFont, pixel_ratio: float) -> QImage:
        colours.append(colour)
        return picture(formula, colour, font, pixel_ratio)

    monkeypatch.setattr(prose_view, "picture", draw)
    desk.set(RATIO)
    view = ProseView(LIGHT, desk)
    qtbot.addWidget(view)
    for words in ("so", "so it", "so it is"):
        view.show_html(f"<p>{mark_of(RATIO.latex, is_block=False)} {words}</p>")
        view.grab()
    assert colours == [LIGHT.text]
    view.show_palette(DARK)
    view.grab()
    assert colours == [LIGHT.text, DARK.text]


def test_formula_set_while_text_is_selected_waits(qtbot: QtBot, desk: PlayedDesk) -> None:
    view = ProseView(LIGHT, desk)
    qtbot.addWidget(view)
    view.show_html(f"<p>so {mark_of(RATIO.latex, is_block=False)} it is</p>")
    view.selectAll()
    desk.set(RATIO)
    assert r"\frac" in view.toPlainText()
    cursor = view.textCursor()
    cursor.clearSelection()
    cursor.movePosition(QTextCursor.MoveOperation.Start)
    view.setTextCursor(cursor)
    assert "\ufffc" in view.toPlainText()


def test_resources_are_formulas_and_nothing_else(qtbot: QtBot, desk: PlayedDesk) -> None:
    view = ProseView(LIGHT, desk)
    qtbot.addWidget(view)
    desk.set(RATIO)
    address = mark_of(RATIO.latex, is_block=False).split('"')[1]
    assert isinstance(view.loadResource(2, address), QImage)
    assert view.loadResource(2, "formula:line:unknown") is None
    assert view.loadResource(2, "file:///etc/passwd") is None
    alone = ProseView(LIGHT)
    qtbot.addWidget(alone)
    assert alone.loadResource(2, address) is None


def test_picture_has_the_colour_of_the_text_and_the_pixels_of_the_screen(qtbot: QtBot) -> None:
    formula = Formula(BAR, 40.0, 10.0, 4.0)
    for palette in (LIGHT, DARK):
        image = picture(formula, palette.text, QFont(), 2.0)
        assert image.width() == 80
        assert image.devicePixelRatio() == 2.0
        middle = image.pixelColor(40, image.height() // 2)
        assert middle == QColor(palette.text)


def test_wide_picture_is_drawn_smaller(qtbot: QtBot) -> None:
    image = picture(Formula(BAR, 4000.0, 10.0, 4.0), "#000000", QFont(), 1.0)
    assert image.width() == MAX_WIDTH_PX


def test_formula_in_an_answer_is_drawn_by_the_true_process(qtbot: QtBot) -> None:
    desk = FormulaDesk()
    view = MarkdownView(LIGHT, desk)
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    view.append(r"The roots of $x^2=2$ are \(\pm\sqrt{2}\)." + "\n\n| a |\n|---|\n| $y^2$ |\n")
    view.finish()
    prose = view.findChildren(ProseView)
    assert any("$x^2=2$" in each.toPlainText() for each in prose)
    qtbot.waitUntil(
        lambda: sum(each.toPlainText().count("\ufffc") for each in prose) == 3, timeout=30_000
    )
    before = prose[0].grab().toImage()
    view.show_palette(DARK)
    assert sum(each.toPlainText().count("\ufffc") for each in prose) == 3
    assert prose[0].grab().toImage() != before
    desk.close()


def test_cell_is_as_wide_as_its_formula_as_written() -> None:
    assert written(f"a {mark_of('x<y', is_block=False)}") == "a $x&lt;y$"
