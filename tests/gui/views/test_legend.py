"""Legends stand in as many columns as fit."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QImage, QRegion
from PySide6.QtWidgets import QComboBox, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.theme.palette import CONTRAST_DARK, CONTRAST_LIGHT, DARK, LIGHT, Palette, contrast
from app.theme.stylesheet import style_sheet
from app.views.legend import MAX_COLUMNS, MIN_WIDTH, Legend
from app.views.tier_bar import Dot, TierBar
from app.views.tier_slider import TierSlider

WORDS = {"vram": "to the graphics card 1.2 of 12", "ram": "RAM 3 of 40", "drive": "drive 0 of 3"}


def test_legend_takes_the_columns_that_fit(qtbot: QtBot) -> None:
    legend: Legend[str] = Legend(LIGHT, {name: name for name in WORDS})
    qtbot.addWidget(legend)
    legend.show_texts(WORDS)
    legend.resize(1000, 80)
    legend.show()
    assert legend.num_columns == MAX_COLUMNS
    legend.resize(MIN_WIDTH, 80)
    qtbot.waitUntil(lambda: legend.num_columns == 1)
    assert legend.minimumSizeHint().width() <= 2 * MIN_WIDTH
    legend.show_texts(dict.fromkeys(WORDS, "0"))
    qtbot.waitUntil(lambda: legend.num_columns == MAX_COLUMNS)


def test_legend_shows_what_it_is_told_alone(qtbot: QtBot) -> None:
    legend: Legend[str] = Legend(LIGHT, {name: name for name in WORDS})
    qtbot.addWidget(legend)
    legend.show_texts({"drive": "drive 0", "vram": "VRAM 1"})
    assert legend.texts() == ["VRAM 1", "drive 0"]
    legend.show_texts({"drive": "drive 2"})
    assert legend.texts() == ["drive 2"]
    legend.show_palette(DARK)


def drawn(widget: QWidget, ground: str) -> QImage:
    """Return a widget as it is drawn on a ground of a colour."""
    widget.ensurePolished()
    image = QImage(widget.size(), QImage.Format.Format_RGB32)
    image.fill(QColor(ground))
    widget.render(image, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)
    return image


def differences(image: QImage, x: int, ground: str) -> list[float]:
    """Return how much each pixel of a column stands out."""
    colours = (QColor(image.pixel(x, y)).name() for y in range(image.height()))
    return [contrast(colour, ground) for colour in colours]


@pytest.mark.parametrize("palette", [CONTRAST_LIGHT, CONTRAST_DARK])
def test_what_is_empty_has_an_edge_in_high_contrast(qtbot: QtBot, palette: Palette) -> None:
    slider = TierSlider(palette, "vram", "VRAM budget", is_from_zero=True)
    slider.resize(300, 24)
    for widget in (TierBar(palette), Dot(palette, "empty"), slider):
        qtbot.addWidget(widget)
        middle = differences(drawn(widget, palette.surface), widget.width() // 2, palette.surface)
        assert max(middle) > 3


@pytest.mark.parametrize("palette", [CONTRAST_LIGHT, CONTRAST_DARK])
def test_what_is_chosen_or_has_the_focus_is_seen_in_high_contrast(
    qtbot: QtBot, palette: Palette
) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    page.setStyleSheet(style_sheet(palette))
    choice, box = QToolButton(page), QComboBox(page)
    choice.setProperty("look", "segment")
    choice.setCheckable(True)
    choice.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    box.move(100, 0)
    page.show()
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    row = choice.height() // 2
    free = differences(drawn(choice, palette.background), 0, palette.background)[row]
    choice.setChecked(True)
    chosen = differences(drawn(choice, palette.background), 0, palette.background)[row]
    assert free < 2
    assert chosen > 3
    box.clearFocus()
    before = drawn(box, palette.background)
    box.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(box.hasFocus)
    assert drawn(box, palette.background) != before
