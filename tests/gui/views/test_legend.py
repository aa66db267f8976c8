"""Legends stand in as many columns as fit."""

import pytest
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from app.theme.palette import CONTRAST_DARK, CONTRAST_LIGHT, DARK, LIGHT, Palette, contrast
from app.views.legend import MAX_COLUMNS, MIN_WIDTH, Legend
from app.views.tier_bar import Dot, TierBar

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


@pytest.mark.parametrize("palette", [CONTRAST_LIGHT, CONTRAST_DARK])
def test_what_is_empty_has_an_edge_in_high_contrast(qtbot: QtBot, palette: Palette) -> None:
    bar, dot = TierBar(palette), Dot(palette, "empty")
    bar.resize(200, bar.height())
    for widget in (bar, dot):
        qtbot.addWidget(widget)
        image = widget.grab().toImage()
        top = QColor(image.pixel(image.width() // 2, 0)).name()
        assert contrast(top, palette.surface) > 3
