"""Looking at a window as it is drawn: emptiness, words that are cut or overlap, contrast."""

from __future__ import annotations

import itertools
from collections import Counter

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QScrollArea, QWidget

from app.theme.palette import contrast
from app.views.table_view import TableView

MIN_TEXT_CONTRAST = 4.5
MAX_PLAIN_RATIO = 0.985
"""A page of which more is one colour shows nothing."""
Word = tuple[QWidget, str, QRect]


def problems(window: QWidget, page: QWidget) -> list[str]:
    """Return what is wrong with a page as it is drawn now; empty where nothing is."""
    image = window.grab().toImage()
    words = _words(window)
    found = [f"overlap: {one!r} and {other!r}" for one, other in _overlaps(words)]
    found += [f"cut: {text!r}" for widget, text, _ in words if _is_cut(widget)]
    found += [
        f"contrast {value:.1f}: {text!r}"
        for widget, text, area in words
        if widget.isEnabled() and (value := _contrast(image, area)) < MIN_TEXT_CONTRAST
    ]
    found += [
        f"sideways: {area.accessibleName()!r} is wider than its place"
        for area in page.findChildren(QScrollArea)
        if area.isVisibleTo(window)
        and not isinstance(area, TableView)
        and (inside := area.widget()) is not None
        and inside.width() > area.viewport().width()
    ]
    if (ratio := _plain_ratio(image, _area(window, page))) > MAX_PLAIN_RATIO:
        found.append(f"empty: {ratio:.1%} of the page is one colour")
    return found


def _words(window: QWidget) -> list[Word]:
    """Return labels and buttons with words of which all is on the screen."""
    found: list[Word] = []
    for widget in window.findChildren(QWidget):
        if not isinstance(widget, QLabel | QAbstractButton) or not widget.isVisibleTo(window):
            continue
        area = _area(window, widget)
        is_whole = widget.visibleRegion().boundingRect() == widget.rect()
        if widget.text().strip() and is_whole and not area.isEmpty():
            found.append((widget, widget.text(), area))
    return found


def _area(window: QWidget, widget: QWidget) -> QRect:
    return QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())


def _overlaps(words: list[Word]) -> list[tuple[str, str]]:
    found = []
    for (one, text, area), (other, other_text, other_area) in itertools.combinations(words, 2):
        if one.isAncestorOf(other) or other.isAncestorOf(one):
            continue
        shared = area.intersected(other_area)
        if shared.width() > 2 and shared.height() > 2:
            found.append((text, other_text))
    return found


def _is_cut(widget: QWidget) -> bool:
    """Whether words need more room than they have."""
    if isinstance(widget, QPushButton):
        return widget.sizeHint().width() > widget.width() + 1
    if isinstance(widget, QLabel) and widget.wordWrap():
        return widget.heightForWidth(widget.width()) > widget.height() + 1
    needed = widget.fontMetrics().horizontalAdvance(_plain(widget))
    lines = _plain(widget).count("\n") + 1
    height = widget.fontMetrics().height() * lines
    is_wide = needed > widget.width() + 1 and lines == 1
    return is_wide or height > widget.height() + 1


def _plain(widget: QWidget) -> str:
    assert isinstance(widget, QLabel | QAbstractButton)
    return widget.text().replace("&&", "&")


def _contrast(image: QImage, area: QRect) -> float:
    """Return the contrast of the strongest pixel with the colour that most pixels have."""
    colours = _colours(image, area)
    ground = colours.most_common(1)[0][0]
    return max(contrast(ground, colour) for colour in colours)


def _plain_ratio(image: QImage, area: QRect) -> float:
    colours = _colours(image, area, step=3)
    return colours.most_common(1)[0][1] / colours.total()


def _colours(image: QImage, area: QRect, step: int = 1) -> Counter[str]:
    scale = image.devicePixelRatio()
    left, top = round(area.x() * scale), round(area.y() * scale)
    right = min(image.width(), round((area.right() + 1) * scale))
    bottom = min(image.height(), round((area.bottom() + 1) * scale))
    found = Counter(
        image.pixel(x, y) for y in range(top, bottom, step) for x in range(left, right, step)
    )
    return Counter({QColor(value).name(): number for value, number in found.items()})
