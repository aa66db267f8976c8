"""Formulas in the HTML of an answer: as marks, as pictures, as they were written."""

import html
import re
from urllib.parse import quote, unquote

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from app.formulas.desk import Formula, FormulaDesk, FormulaKey
from app.formulas.typeset import INK

SCHEME = "formula"
MAX_WIDTH_PX = 640
"""Wider formulas are drawn smaller."""
IMAGE = re.compile(r'<img src="formula:([^"]*)"')
"""A formula in the HTML that a document writes."""
_MARK = re.compile(r'<img src="formula:(block|line):([^"]*)"/>')


def mark_of(latex: str, *, is_block: bool) -> str:
    """Return what stands for a formula in HTML."""
    kind = "block" if is_block else "line"
    return f'<img src="{SCHEME}:{kind}:{quote(latex.strip(), safe="")}"/>'


def key_of(address: str) -> FormulaKey:
    """Return the formula that an address stands for, without its scheme."""
    kind, _, latex = address.partition(":")
    return FormulaKey(unquote(latex), kind == "block")


def written(text: str) -> str:
    """Return HTML or text with each formula as it was written, for measuring and copying."""
    return _MARK.sub(lambda match: html.escape(_source(_key(match))), text)


def written_of(address: str) -> str:
    """Return the formula of an address as it was written; empty for none."""
    return _source(key_of(address)) if address else ""


def filled(text: str, desk: FormulaDesk | None) -> tuple[str, frozenset[FormulaKey]]:
    """Return HTML in which known formulas are pictures, and the formulas that are not."""
    missing: set[FormulaKey] = set()

    def fill(match: re.Match[str]) -> str:
        key = _key(match)
        if desk is not None and desk.find(key) is not None:
            return match.group(0).replace("/>", ' style="vertical-align: middle"/>')
        missing.add(key)
        return f"<code>{html.escape(_source(key))}</code>"

    return _MARK.sub(fill, text), frozenset(missing)


def picture(formula: Formula, colour: str, font: QFont, pixel_ratio: float) -> QImage:
    """Return a formula in a colour, to be put into a line of a font with its middle aligned.

    Qt puts the middle of a picture a quarter of the font's x above the line of writing; clear room
    above or below puts the formula's own line there::

        room above | ascent | line of writing | descent | room below
    """
    scale = min(1.0, MAX_WIDTH_PX / formula.width)
    ascent, descent = formula.ascent * scale, formula.descent * scale
    half_x = QFontMetricsF(font).xHeight() / 2
    height = max(2 * ascent - half_x, 2 * descent + half_x)
    width = formula.width * scale
    image = QImage(
        max(1, round(width * pixel_ratio)),
        max(1, round(height * pixel_ratio)),
        QImage.Format.Format_ARGB32_Premultiplied,
    )
    image.setDevicePixelRatio(pixel_ratio)
    image.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(formula.svg.replace(INK, colour).encode()))
    painter = QPainter(image)
    top = (height + half_x) / 2 - ascent
    renderer.render(painter, QRectF(0, top, width, ascent + descent))
    painter.end()
    return image


def _key(match: re.Match[str]) -> FormulaKey:
    return key_of(f"{match.group(1)}:{match.group(2)}")


def _source(key: FormulaKey) -> str:
    return f"$${key.latex}$$" if key.is_block else f"${key.latex}$"
